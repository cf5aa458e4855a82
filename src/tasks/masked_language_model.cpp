#include "tessera/tasks/masked_language_model.h"

#include "tessera/base/error.h"
#include "tessera/nn/layers.h"

#include "tasks/masking.h"
#include "tasks/share_evaluator.h"

namespace tessera::tasks {
namespace {

using Options = MaskedLanguageModelOptions;

constexpr int64_t kNeighbors = 5;  // tokens that the first convolution sees

// What a row was made into for training.
struct Puzzle {
  Value* tokens;     // int32 [batch, tokens], with gaps
  Value* labels;     // int32 [batch, tokens], what was there
  Value* chosen;     // fp32 [batch, tokens]: 1 where something is to be filled in
  Value* exchanged;  // fp32 [batch]: 1 where the second half stands first
};

Puzzle make_puzzle(const Options& options, nn::Context& context, Value* tokens) {
  const auto scope = context.scope("puzzle");
  const SymbolicShape shape = tokens->shape();
  const MaskingDraws draws(context);
  const int64_t half = options.tokens / 2;
  const std::vector<Value*> halves = ops::split(tokens, {half, half}, 1);
  Value* exchanged = happens(draws.uniform({shape[0], 1}), 0.5);
  Value* labels = ops::select(exchanged, ops::concat({halves[1], halves[0]}, 1), tokens);
  Value* chosen =
      ops::logical_and(happens(draws.uniform(shape), options.masked), is_none_of(labels, options.kept));
  Value* gaps = gaps_for(draws, labels, options.mask_token(), options.vocabulary);
  return {.tokens = ops::select(chosen, gaps, labels),
          .labels = labels,
          .chosen = ops::cast(chosen, DataType::fp32),
          .exchanged = ops::cast(ops::reshape(exchanged, {shape[0]}), DataType::fp32)};
}

Value* words(const Options& options, nn::Context& context) {
  return context.parameter("words.weight", {options.all_tokens(), options.width}, nn::normal(0.02));
}

// [batch, tokens, width]
Value* encoder(const Options& options, nn::Context& context, Value* tokens) {
  Value* positions = context.parameter("positions.weight", {options.tokens, options.width}, nn::normal(0.02));
  ops::Expression x = ops::gather(words(options, context), tokens);
  x = x + positions;
  // Neighbors, which attention would find by their positions much later.
  const int64_t beside = kNeighbors / 2;
  x = x + ops::gelu(nn::convolution(context, "neighbors", x, options.width, kNeighbors, {.padding = beside}));
  const nn::LinearOptions start{.weight = nn::xavier_uniform()};
  for (int64_t layer = 0; layer < options.layers; ++layer) {
    const auto scope = context.scope("layer" + std::to_string(layer));
    Value* attended =
        nn::self_attention(context, "attention", nn::layer_norm(context, "norm0", x), options.heads);
    x = x + nn::dropout(context, attended, options.dropout);
    Value* inner = nn::linear(context, "fc0", nn::layer_norm(context, "norm1", x), 4 * options.width, start);
    Value* outer = nn::linear(context, "fc1", ops::gelu(inner), options.width, start);
    x = x + nn::dropout(context, outer, options.dropout);
  }
  return nn::layer_norm(context, "norm", x);
}

// [batch, tokens, all tokens], by the embeddings of the words.
Value* decoder(const Options& options, nn::Context& context, Value* x) {
  Value* logits = ops::matmul(x, words(options, context), {.transpose_b = true});
  return ops::add(logits, context.parameter("bias", {options.all_tokens()}, nn::zeros(), false));
}

// [batch]: the logit of whether the halves were exchanged.
Value* order(nn::Context& context, Value* x) {
  Value* pooled =
      ops::tanh(nn::linear(context, "pooler", ops::reduce_mean(x, {.axes = {1}}), x->shape()[2].value()));
  return ops::reshape(nn::linear(context, "order", pooled, 1), {x->shape()[0]});
}

nn::Training training(const Options& options, nn::Context& context, Value* tokens) {
  const Puzzle puzzle = make_puzzle(options, context, tokens);
  Value* x = encoder(options, context, puzzle.tokens);
  const Dimension places = element_count(tokens->shape());
  Value* logits = ops::reshape(decoder(options, context, x), {places, options.all_tokens()});
  Value* losses = ops::cross_entropy(logits, ops::reshape(puzzle.labels, {places}));
  const nn::Measure masked = nn::mean_of("masked", losses, ops::reshape(puzzle.chosen, {places}));
  const nn::Measure halves =
      nn::mean_of("order", ops::binary_cross_entropy(order(context, x), puzzle.exchanged));
  return {.objectives = {nn::total_of("loss", {masked, halves})}, .metrics = {masked, halves}};
}

// 1 where two numbers are equal.
Value* agreement(Value* a, Value* b) {
  return ops::cast(ops::equal(a, b), DataType::fp32);
}

// By row: places that were filled with what was there, places to be filled, whether the order was told.
nn::Values evaluation(const Options& options, nn::Context& context, Value* tokens) {
  const Puzzle puzzle = make_puzzle(options, context, tokens);
  Value* x = encoder(options, context, puzzle.tokens);
  Value* filled = ops::cast(ops::argmax(decoder(options, context, x), 2), DataType::int32);
  Value* hits = ops::multiply(agreement(ops::reshape(filled, tokens->shape()), puzzle.labels), puzzle.chosen);
  Value* logits = order(context, x);
  Value* told = ops::cast(ops::greater(logits, ops::constant_like(logits, 0)), DataType::fp32);
  return {{"hits", ops::reduce_sum(hits, {.axes = {1}})},
          {"places", ops::reduce_sum(puzzle.chosen, {.axes = {1}})},
          {"ordered", agreement(told, puzzle.exchanged)}};
}

}  // namespace

nn::Task masked_language_model(const MaskedLanguageModelOptions& options) {
  require(options.tokens > 0 && options.tokens % 2 == 0, ErrorCode::invalid_argument,
          "masked_language_model: a row of {} tokens has no halves", options.tokens);
  require(!options.mask || (*options.mask >= 0 && *options.mask < options.vocabulary),
          ErrorCode::invalid_argument, "masked_language_model: the mask is token {} of a vocabulary of {}",
          options.mask_token(), options.vocabulary);
  return {.name = "masked_language_model",
          .network = "encoder",
          .inputs = {{"tokens", {DataType::int32, {Dimension::symbol("batch"), options.tokens}}}},
          .metrics = {{.name = "loss"},
                      {.name = "masked"},
                      {.name = "order"},
                      {.name = "masked_accuracy", .percent = true, .larger_is_better = true},
                      {.name = "order_accuracy", .percent = true, .larger_is_better = true}},
          .samples = "rows",
          .training = [=](nn::Context& context,
                          const nn::Values& in) { return training(options, context, in["tokens"]); },
          .inference = [=](nn::Context& context, const nn::Values& in) -> nn::Values {
            return {{"logits", decoder(options, context, encoder(options, context, in["tokens"]))}};
          },
          .evaluation = [=](nn::Context& context,
                            const nn::Values& in) { return evaluation(options, context, in["tokens"]); }};
}

train::EvaluatorMaker masked_language_model_evaluator() {
  return share_evaluator({{.name = "masked_accuracy", .sum = "hits", .weight = "places"},
                          {.name = "order_accuracy", .sum = "ordered", .weight = ""}});
}

}  // namespace tessera::tasks
