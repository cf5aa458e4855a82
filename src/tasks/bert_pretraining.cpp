#include "tessera/tasks/bert_pretraining.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tessera/base/error.h"
#include "tessera/nn/layers.h"

#include "tasks/counted_labels.h"
#include "tasks/masking.h"
#include "tasks/packed_rows.h"
#include "tasks/share_evaluator.h"

namespace tessera::tasks {
namespace {

// What rows were made into for training.
struct Puzzle {
  Value* tokens;  // int32 [batch, tokens], with gaps
  Value* places;  // int32 [batch, places]: which of all rows' tokens, one row after another, may be gaps
  Value* labels;  // int32 [batch, places], what was there
  Value* counts;  // fp32 [batch, places]: 1 at the gaps, which come first
};

Puzzle make_puzzle(const BertPretrainingOptions& options, nn::Context& context, Value* tokens, Value* shown) {
  const auto scope = context.scope("masking");
  Graph& graph = context.graph();
  const SymbolicShape shape = tokens->shape();
  const MaskingDraws draws(context);
  Value* inside = ops::cast(shown, DataType::boolean);
  Value* allowed = ops::logical_and(inside, is_none_of(tokens, options.kept));
  // The largest numbers of a row say where its gaps are: as many as there are to be, however long it is.
  Value* draw = draws.uniform(shape);
  const ops::TopK drawn =
      ops::top_k(ops::select(allowed, draw, ops::constant_like(draw, -1)), options.places());
  Value* count = ops::reduce_sum(ops::cast(allowed, DataType::fp32), {.axes = {1}, .keep_dimensions = true});
  Value* wanted = ops::round(ops::multiply(count, options.masked));
  wanted = ops::maximum(wanted, ops::constant_like(wanted, 1));
  Value* is_wanted = ops::less(ops::iota(graph, {1, options.places()}, 1, DataType::fp32), wanted);
  Value* counts =
      ops::logical_and(is_wanted, ops::greater_equal(drawn.values, ops::constant_like(drawn.values, 0)));

  Value* row =
      ops::multiply(ops::iota(graph, {shape[0], 1}, 0, DataType::int32), static_cast<double>(options.tokens));
  Value* places = ops::add(drawn.indices, row);
  Value* all = ops::reshape(tokens, {element_count(shape)});
  Value* labels = ops::gather(all, places);
  Value* gaps = gaps_for(draws, labels, options.mask, options.network.vocabulary);
  Value* written = ops::select(counts, places, ops::constant_like(places, -1));
  const Dimension flat = element_count(places->shape());
  Value* gapped = ops::set_rows(all, ops::reshape(written, {flat}), ops::reshape(gaps, {flat}));
  return {.tokens = ops::reshape(gapped, shape),
          .places = places,
          .labels = labels,
          .counts = ops::cast(counts, DataType::fp32)};
}

// Which tokens of the rows are texts.
PackedRows layout(const BertPretrainingOptions& options, const nn::Values& in) {
  Value* lengths = in["lengths"];
  return packed_rows(ops::reshape(lengths, {lengths->shape()[0], options.pairs}), options.tokens);
}

Value* encoder(const BertPretrainingOptions& options, nn::Context& context, const nn::Values& in,
               const PackedRows& rows, Value* tokens) {
  models::BertInputs inputs{.tokens = tokens, .segments = in["segments"]};
  if (options.pairs == 1) {
    inputs.lengths = rows.lengths;
  } else {
    inputs.texts = rows.texts;
    inputs.positions = rows.positions;
  }
  return models::bert_encoder(context, options.network, inputs);
}

// [A, B, width] -> [A * B, width].
Value* one_after_another(Value* x) {
  const SymbolicShape& shape = x->shape();
  return ops::reshape(x, {shape[0] * shape[1], shape[2]});
}

// [batch * pairs, 2].
Value* next_sentence(const BertPretrainingOptions& options, nn::Context& context, const PackedRows& rows,
                     Value* encoded) {
  if (options.pairs == 1)
    return models::bert_next_sentence(context, options.network,
                                      models::bert_pooler(context, options.network, encoded));
  Value* first = ops::gather(one_after_another(encoded),
                             ops::reshape(rows.firsts, {element_count(rows.firsts->shape())}));
  return models::bert_next_sentence(context, options.network,
                                    models::bert_pooled(context, options.network, first));
}

// What the network says of rows with gaps, and what is right.
struct Said {
  Value* words;      // of G places that may be gaps, [G, vocabulary]
  Value* labels;     // int32 [G]
  Value* counts;     // fp32 [G]
  Value* sentences;  // [batch * pairs, 2]
};

Said said_of_rows(const BertPretrainingOptions& options, nn::Context& context, const nn::Values& in,
                  const PackedRows& packed, const Puzzle& puzzle) {
  Value* encoded = encoder(options, context, in, packed, puzzle.tokens);
  const SymbolicShape flat{element_count(puzzle.places->shape())};
  Value* at_places = ops::gather(one_after_another(encoded), ops::reshape(puzzle.places, flat));
  return {.words = models::bert_token_logits(context, options.network, at_places),
          .labels = ops::reshape(puzzle.labels, flat),
          .counts = ops::reshape(puzzle.counts, flat),
          .sentences = next_sentence(options, context, packed, encoded)};
}

// Gaps of a batch at most: a text's share may be rounded up, and is one at least.
int64_t most_gaps(const BertPretrainingOptions& options, int64_t rows) {
  const auto share = std::ceil(options.masked * static_cast<double>(options.list));
  return std::min(static_cast<int64_t>(share) + rows, rows * options.places());
}

Said said_of_list(const BertPretrainingOptions& options, nn::Context& context, const nn::Values& in,
                  const Puzzle& puzzle) {
  const nn::TokenList list(in["lengths"], options.tokens, options.list);
  Value* encoded = one_after_another(models::bert_encoder(
      context, options.network,
      {.tokens = list.to_list(puzzle.tokens), .segments = list.to_list(in["segments"]), .list = &list}));

  const SymbolicShape& rows = puzzle.tokens->shape();
  Value* gap_counts = ops::cast(ops::reduce_sum(puzzle.counts, {.axes = {1}}), DataType::int32);
  const nn::TokenList gaps(gap_counts, options.places(), most_gaps(options, rows[0].value()));
  const SymbolicShape of_gaps{gaps.size()};
  Value* places = ops::reshape(gaps.to_list(puzzle.places), of_gaps);
  Value* listed = ops::gather(ops::reshape(list.places(), {element_count(rows)}), places);
  Value* is_gap =
      ops::less(ops::iota(context.graph(), of_gaps, 0, DataType::int32), ops::reduce_sum(gap_counts, {}));

  Value* firsts = ops::reshape(ops::slice(list.places(), {0, 0}, {ops::kWholeAxis, 1}), {rows[0]});
  Value* pooled = models::bert_pooled(context, options.network, ops::gather(encoded, firsts));
  Value* sentences = models::bert_next_sentence(context, options.network, pooled);
  // A batch that the list has no room for is nothing to learn from.
  Value* none = ops::constant_like(sentences, std::numeric_limits<double>::quiet_NaN());
  return {.words = models::bert_token_logits(context, options.network, ops::gather(encoded, listed)),
          .labels = ops::reshape(gaps.to_list(puzzle.labels), of_gaps),
          .counts = ops::cast(is_gap, DataType::fp32),
          .sentences = ops::select(list.fits(), sentences, none)};
}

// How right that is. By place and by row.
struct Answers {
  Value* masked_losses;    // fp32 [G]
  Value* masked_hits;      // fp32 [G]: 1 where the likeliest token is what was there
  Value* counts;           // fp32 [G]
  Value* sentence_losses;  // fp32 [batch * pairs]
  Value* sentence_hits;    // fp32 [batch * pairs]
  Value* sentences;        // fp32 [batch * pairs]: 1 where there is a pair
};

Answers answers(const BertPretrainingOptions& options, nn::Context& context, const nn::Values& in) {
  const PackedRows packed = layout(options, in);
  const Puzzle puzzle = make_puzzle(options, context, in["tokens"], packed.shown);
  const Said said = options.list > 0 && context.training()
                        ? said_of_list(options, context, in, puzzle)
                        : said_of_rows(options, context, in, packed, puzzle);
  const Dimension pairs = element_count(packed.firsts->shape());
  Value* follows = ops::reshape(in["next_sentence"], {pairs});
  return {.masked_losses = ops::cross_entropy(said.words, said.labels),
          .masked_hits = hits_of(said.words, said.labels),
          .counts = said.counts,
          .sentence_losses = ops::cross_entropy(said.sentences, follows),
          .sentence_hits = hits_of(said.sentences, follows),
          .sentences = ops::reshape(packed.has_text, {pairs})};
}

nn::Training training(const Answers& given) {
  const nn::Measure masked = nn::mean_of("masked", given.masked_losses, given.counts);
  const nn::Measure sentences = nn::mean_of("next_sentence", given.sentence_losses, given.sentences);
  return {.objectives = {nn::total_of("loss", {masked, sentences})},
          .metrics = {masked, sentences, nn::mean_of("masked_accuracy", given.masked_hits, given.counts),
                      nn::mean_of("next_sentence_accuracy", given.sentence_hits, given.sentences)}};
}

// Sums by row.
nn::Values evaluation(const BertPretrainingOptions& options, const Answers& given, const Dimension& rows) {
  const auto of_rows = [&](Value* values, Value* counts, int64_t each) {
    Value* counted = ops::multiply(ops::cast(values, DataType::fp32), counts);
    return ops::reduce_sum(ops::reshape(counted, {rows, each}), {.axes = {1}});
  };
  const int64_t places = options.places();
  return {{"masked_losses", of_rows(given.masked_losses, given.counts, places)},
          {"masked_hits", of_rows(given.masked_hits, given.counts, places)},
          {"places", of_rows(given.counts, given.counts, places)},
          {"sentence_losses", of_rows(given.sentence_losses, given.sentences, options.pairs)},
          {"sentence_hits", of_rows(given.sentence_hits, given.sentences, options.pairs)},
          {"sentences", of_rows(given.sentences, given.sentences, options.pairs)}};
}

void check(const BertPretrainingOptions& options) {
  const auto code = ErrorCode::invalid_argument;
  const models::BertConfig& network = options.network;
  require(options.mask >= 0 && options.mask < network.vocabulary, code,
          "bert_pretraining: the mask is token {} of a vocabulary of {}", options.mask, network.vocabulary);
  require(options.masked > 0 && options.masked <= 1, code,
          "bert_pretraining: masked is {}, expected above 0 and at most 1", options.masked);
  require(options.pairs > 0, code, "bert_pretraining: rows of {} pairs", options.pairs);
  require(options.list == 0 || (options.list > 0 && options.pairs == 1), code,
          "bert_pretraining: a list of {} places for rows of {} pairs", options.list, options.pairs);
  require(options.tokens > 0 && options.tokens <= network.positions, code,
          "bert_pretraining: rows of {} tokens, the network has {} positions", options.tokens,
          network.positions);
}

}  // namespace

// Halves go to the even number, as in the graph, so that no row has more.
int64_t BertPretrainingOptions::places() const {
  return std::max<int64_t>(1, std::llrint(masked * static_cast<double>(tokens)));
}

nn::Task bert_pretraining(const BertPretrainingOptions& options) {
  check(options);
  const Dimension batch = Dimension::symbol("batch");
  const TensorType of_tokens{DataType::int32, {batch, options.tokens}};
  TensorType of_pairs{DataType::int32, {batch}};
  if (options.pairs > 1) of_pairs.shape.emplace_back(options.pairs);
  return {.name = "bert_pretraining",
          .network = "bert",
          .inputs = {{"tokens", of_tokens},
                     {"segments", of_tokens},
                     {"lengths", of_pairs},
                     {"next_sentence", of_pairs}},
          .metrics = {{.name = "loss"},
                      {.name = "masked"},
                      {.name = "next_sentence"},
                      {.name = "masked_accuracy", .percent = true, .larger_is_better = true},
                      {.name = "next_sentence_accuracy", .percent = true, .larger_is_better = true}},
          .samples = "rows",
          .training = [=](nn::Context& context,
                          const nn::Values& in) { return training(answers(options, context, in)); },
          .inference = [=](nn::Context& context, const nn::Values& in) -> nn::Values {
            const PackedRows rows = layout(options, in);
            Value* encoded = encoder(options, context, in, rows, in["tokens"]);
            SymbolicShape of_pairs = in["lengths"]->shape();
            of_pairs.emplace_back(2);
            return {
                {"logits", models::bert_token_logits(context, options.network, encoded)},
                {"next_sentence", ops::reshape(next_sentence(options, context, rows, encoded), of_pairs)}};
          },
          .evaluation =
              [=](nn::Context& context, const nn::Values& in) {
                return evaluation(options, answers(options, context, in), in["tokens"]->shape()[0]);
              }};
}

train::EvaluatorMaker bert_pretraining_evaluator() {
  return share_evaluator({{.name = "masked", .sum = "masked_losses", .weight = "places"},
                          {.name = "next_sentence", .sum = "sentence_losses", .weight = "sentences"},
                          {.name = "masked_accuracy", .sum = "masked_hits", .weight = "places"},
                          {.name = "next_sentence_accuracy", .sum = "sentence_hits", .weight = "sentences"}});
}

}  // namespace tessera::tasks
