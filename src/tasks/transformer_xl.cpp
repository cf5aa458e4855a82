#include "tessera/tasks/transformer_xl.h"

#include <utility>

#include "tessera/base/error.h"
#include "tessera/ops/functions.h"

#include "tasks/perplexity.h"

namespace tessera::tasks {
namespace {

constexpr const char* kNetwork = "transformer_xl";
constexpr const char* kServedMemory = "served_memory";

// Of every token of a segment, and what is kept of it for the next.
struct Foretold {
  Value* losses;   // fp32 [batch, tokens], 0 where nothing counts
  Value* counted;  // fp32 [batch, tokens], 1 or 0
};

Foretold foretell(nn::Context& context, const models::TransformerXlConfig& network, const nn::Values& in,
                  const nn::SegmentMemory& memory, const MostLabels& most_labels) {
  Value* labels = in["labels"];
  Value* decoded = models::transformer_xl(context, network, in["tokens"], &memory);
  Value* counted = ops::greater_equal(labels, ops::constant_like(labels, 0));
  std::vector<int64_t> most;
  if (most_labels) most = most_labels(labels->shape().front().value(), context.ranks().count);
  return {.losses = models::transformer_xl_losses(context, network, decoded, labels, most),
          .counted = ops::cast(counted, DataType::fp32)};
}

}  // namespace

nn::Task transformer_xl(const TransformerXlOptions& options) {
  require(options.tokens > 0, ErrorCode::invalid_argument, "transformer_xl: segments of {} tokens",
          options.tokens);
  require(options.memory >= 0 && options.evaluation_memory >= 0, ErrorCode::invalid_argument,
          "transformer_xl: memories of {} and {} tokens", options.memory, options.evaluation_memory);
  const Dimension batch = Dimension::symbol("batch");
  const TensorType of_tokens{DataType::int32, {batch, options.tokens}};
  // The lengths differ, and so do the states.
  const auto foretold = [=](nn::Context& context, const nn::Values& in, const char* name, int64_t length,
                            const MostLabels& most_labels) {
    const nn::SegmentMemory memory(context, name, length, {.begins = in["begins"], .tokens = options.tokens});
    return foretell(context, options.network, in, memory, most_labels);
  };
  return {.name = "transformer_xl",
          .network = kNetwork,
          .inputs = {{"tokens", of_tokens}, {"labels", of_tokens}, {"begins", {DataType::int32, {batch}}}},
          .metrics = {{.name = "loss"},
                      {.name = "bits_per_character"},
                      {.name = "perplexity"},
                      {.name = "bits_per_token"}},
          .samples = "segments",
          .training = [=](nn::Context& context, const nn::Values& in) -> nn::Training {
            const Foretold own = foretold(context, in, "memory", options.memory, options.training_labels);
            return {.objectives = {nn::mean_of("loss", own.losses, own.counted)}};
          },
          .inference = [=](nn::Context& context, const nn::Values& in) -> nn::Values {
            Value* decoded = models::transformer_xl(context, options.network, in["tokens"]);
            return {{"logits", models::transformer_xl_logits(context, options.network, decoded)}};
          },
          .evaluation = [=](nn::Context& context, const nn::Values& in) -> nn::Values {
            const Foretold own = foretold(context, in, "evaluation_memory", options.evaluation_memory,
                                          options.evaluation_labels);
            return {{"nats", ops::reduce_sum(own.losses, {.axes = {1}})}};
          }};
}

nn::Task transformer_xl_passes(const models::TransformerXlConfig& network, int64_t memory) {
  const Dimension tokens = Dimension::symbol("tokens");
  return {.name = "transformer_xl_passes",
          .network = kNetwork,
          .inputs = {{"tokens", {DataType::int32, {1, tokens}}},
                     {"places", {DataType::int32, {tokens}}},
                     {"last", {DataType::int32, {1}}}},
          .inference = [=](nn::Context& context, const nn::Values& in) -> nn::Values {
            Value* first = ops::slice(in["places"], {0}, {1});
            Value* begins = ops::equal(first, ops::constant_like(first, 0));
            const nn::SegmentMemory kept(context, kServedMemory, memory,
                                         {.begins = ops::cast(begins, DataType::int32),
                                          .tokens = in["tokens"]->shape()[1].value(),
                                          .count = ops::add(in["last"], 1)});
            Value* decoded = models::transformer_xl(context, network, in["tokens"], &kept);
            Value* last = ops::gather(ops::reshape(decoded, {-1, network.width}), in["last"]);
            return {{"logits", models::transformer_xl_logits(context, network, last)}};
          }};
}

train::EvaluatorMaker transformer_xl_evaluator(
    std::function<std::string(std::span<const int32_t> tokens)> text) {
  return perplexity_evaluator(std::move(text));
}

}  // namespace tessera::tasks
