#include "tessera/models/bert.h"

#include <optional>

#include "tessera/base/error.h"
#include "tessera/nn/layers.h"

namespace tessera::models {
namespace {

Value* dense(nn::Context& context, const BertConfig& config, const std::string& name, Value* x,
             int64_t outputs) {
  return nn::linear(context, name, x, outputs,
                    {.weight = nn::truncated_normal(config.deviation), .bias_start = nn::zeros()});
}

Value* norm(nn::Context& context, const BertConfig& config, const std::string& name, Value* x) {
  return nn::layer_norm(context, name, x, config.epsilon);
}

// Of each token in its text.
Value* token_positions(nn::Context& context, const BertInputs& inputs) {
  if (inputs.list != nullptr) return inputs.list->positions();
  if (inputs.positions != nullptr) return inputs.positions;
  return ops::iota(context.graph(), {inputs.tokens->shape()[1]}, 0, DataType::int32);
}

const Dimension& tokens_of_row(const BertInputs& inputs) {
  return (inputs.list == nullptr ? inputs.tokens : inputs.list->places())->shape()[1];
}

Value* embeddings(nn::Context& context, const BertConfig& config, const BertInputs& inputs) {
  const auto scope = context.scope("embeddings");
  const Dimension& tokens = tokens_of_row(inputs);
  require(!tokens.is_static() || tokens.value() <= config.positions, ErrorCode::invalid_argument,
          "rows of {} tokens, the network has {} positions", tokens.to_string(), config.positions);
  const auto table = [&](const char* name, Value* indices, int64_t entries) {
    return nn::embedding(context, name, indices, entries, config.width,
                         {.weight = nn::truncated_normal(config.deviation)});
  };
  ops::Expression x = table("word_embeddings", inputs.tokens, config.vocabulary);
  x = x + table("position_embeddings", token_positions(context, inputs), config.positions);
  Value* segments = inputs.segments;
  if (segments == nullptr) segments = ops::constant(context.graph(), Tensor::from<int32_t>({1, 1}, {0}));
  x = x + table("token_type_embeddings", segments, config.segments);
  return nn::dropout(context, norm(context, config, "LayerNorm", x), config.dropout);
}

// What tokens attend to: both null where it is all of their row.
struct Seen {
  Value* scores = nullptr;  // added to those of attention
  Value* key_lengths = nullptr;
};

Seen seen_in(const BertInputs& inputs) {
  if (inputs.list == nullptr && inputs.texts != nullptr) return {.scores = nn::hidden_texts(inputs.texts)};
  Value* lengths = inputs.list != nullptr ? inputs.list->lengths() : inputs.lengths;
  if (lengths == nullptr) return {};
  return {.key_lengths = nn::key_lengths(lengths, tokens_of_row(inputs))};
}

// Each half adds to what it was given, and norms the sum.
Value* encoder_layer(nn::Context& context, const BertConfig& config, Value* x, const Seen& seen,
                     const nn::TokenList* list) {
  const auto half = [&](const std::string& name, Value* given, Value* added) {
    return norm(context, config, name, given + nn::dropout(context, added, config.dropout));
  };
  Value* attended = nn::self_attention(
      context, "attention", x, config.heads,
      {.scores = seen.scores,
       .key_lengths = seen.key_lengths,
       .dropout = config.attention_dropout,
       .names = {{.query = "self.query", .key = "self.key", .value = "self.value", .output = "output.dense"}},
       .weight = nn::truncated_normal(config.deviation),
       .list = list});
  x = half("attention.output.LayerNorm", x, attended);
  Value* inner = ops::gelu(dense(context, config, "intermediate.dense", x, config.inner));
  return half("output.LayerNorm", x, dense(context, config, "output.dense", inner, config.width));
}

}  // namespace

Value* bert_encoder(nn::Context& context, const BertConfig& config, const BertInputs& inputs) {
  require(config.heads > 0 && config.width % config.heads == 0, ErrorCode::invalid_argument,
          "a width of {} has no {} heads", config.width, config.heads);
  const auto scope = context.scope("bert");
  Value* x = embeddings(context, config, inputs);
  const Seen seen = seen_in(inputs);
  for (int64_t layer = 0; layer < config.layers; ++layer) {
    const auto inside = context.scope("encoder.layer." + std::to_string(layer));
    x = encoder_layer(context, config, x, seen, inputs.list);
  }
  return x;
}

Value* bert_pooler(nn::Context& context, const BertConfig& config, Value* encoded) {
  const Dimension& rows = encoded->shape()[0];
  Value* first = ops::slice(encoded, {0, 0, 0}, {ops::kWholeAxis, 1, ops::kWholeAxis});
  return bert_pooled(context, config, ops::reshape(first, {rows, config.width}));
}

Value* bert_pooled(nn::Context& context, const BertConfig& config, Value* first) {
  return ops::tanh(dense(context, config, "bert.pooler.dense", first, config.width));
}

Value* bert_token_logits(nn::Context& context, const BertConfig& config, Value* encoded) {
  // The table that the encoder reads, which need not have been built before.
  Value* words = context.parameter("bert.embeddings.word_embeddings.weight",
                                   {config.vocabulary, config.width}, nn::truncated_normal(config.deviation));
  const auto scope = context.scope("cls.predictions");
  Value* x = ops::gelu(dense(context, config, "transform.dense", encoded, config.width));
  x = norm(context, config, "transform.LayerNorm", x);
  return ops::add(ops::matmul(x, words, {.transpose_b = true}),
                  context.parameter("bias", {config.vocabulary}, nn::zeros(), false));
}

Value* bert_next_sentence(nn::Context& context, const BertConfig& config, Value* pooled) {
  return dense(context, config, "cls.seq_relationship", pooled, 2);
}

Value* bert_label_logits(nn::Context& context, const BertConfig& config, Value* x) {
  require(config.labels.size() >= 2, ErrorCode::invalid_argument,
          "a classifier tells two labels apart at least, not {}", config.labels.size());
  return dense(context, config, "classifier", nn::dropout(context, x, config.dropout),
               std::ssize(config.labels));
}

BertSpanLogits bert_span_logits(nn::Context& context, const BertConfig& config, Value* encoded) {
  const SymbolicShape places{encoded->shape()[0], encoded->shape()[1]};
  const std::vector<Value*> logits = ops::split(dense(context, config, "qa_outputs", encoded, 2), {1, 1}, 2);
  return {.starts = ops::reshape(logits[0], places), .ends = ops::reshape(logits[1], places)};
}

std::vector<nn::Variable> bert_variables(const BertConfig& config, BertForm form) {
  Graph graph("bert");
  nn::Context context(graph, nn::Mode::inference);
  Value* tokens = graph.add_input(InputRole::input, "tokens", {DataType::int32, {1, 1}});
  Value* encoded = bert_encoder(context, config, {.tokens = tokens});
  switch (form) {
    case BertForm::pretraining:
      bert_token_logits(context, config, encoded);
      bert_next_sentence(context, config, bert_pooler(context, config, encoded));
      break;
    case BertForm::encoder:
      bert_pooler(context, config, encoded);
      break;
    case BertForm::sequence_classification:
      bert_label_logits(context, config, bert_pooler(context, config, encoded));
      break;
    case BertForm::token_classification:
      bert_label_logits(context, config, encoded);
      break;
    case BertForm::question_answering:
      bert_span_logits(context, config, encoded);
      break;
  }
  return context.variables();
}

}  // namespace tessera::models
