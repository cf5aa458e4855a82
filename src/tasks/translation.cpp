#include "tessera/tasks/translation.h"

#include "tessera/base/error.h"
#include "tessera/nn/layers.h"
#include "tessera/ops/functions.h"

#include "tasks/counted_labels.h"

namespace tessera::tasks {
namespace {

// By row and place.
struct Said {
  Value* losses;
  Value* hits;
  Value* counts;  // fp32: 1 at what is no padding
};

Value* logits_of(nn::Context& context, const models::TransformerConfig& network, const nn::Values& in) {
  Value* encoded = models::transformer_encoder(context, network, in["source"], in["source_lengths"]);
  Value* decoded = models::transformer_decoder(context, network, in["target"], encoded, in["source_lengths"]);
  return models::transformer_logits(context, network, decoded);
}

Said said(nn::Context& context, const models::TransformerConfig& network, const nn::Values& in,
          double smoothing) {
  const SymbolicShape shape = in["labels"]->shape();
  const Dimension places = element_count(shape);
  Value* logits = ops::reshape(logits_of(context, network, in), {places, network.vocabulary});
  Value* labels = ops::reshape(in["labels"], {places});
  // There the right token keeps its part of what is spread over all; fairseq spreads over the others.
  const auto vocabulary = static_cast<double>(network.vocabulary);
  Value* losses =
      ops::cross_entropy(logits, labels, {.smoothing = smoothing * vocabulary / (vocabulary - 1)});
  return {.losses = ops::reshape(losses, shape),
          .hits = ops::reshape(hits_of(logits, labels), shape),
          .counts = ops::cast(nn::within_lengths(in["target_lengths"], shape[1]), DataType::fp32)};
}

}  // namespace

nn::Task translation(const TranslationOptions& options) {
  const models::TransformerConfig network = options.network;
  models::transformer_variables(network);  // refuses what cannot be
  const Dimension batch = Dimension::symbol("batch");
  const TensorType of_tokens{DataType::int32, {batch, Dimension::symbol("tokens")}};
  const TensorType of_rows{DataType::int32, {batch}};
  return {.name = "translation",
          .network = "transformer",
          .inputs = {{"source", of_tokens},
                     {"source_lengths", of_rows},
                     {"target", of_tokens},
                     {"labels", of_tokens},
                     {"target_lengths", of_rows}},
          .metrics = {{.name = "bleu", .larger_is_better = true},
                      {.name = "perplexity"},
                      {.name = "loss"},
                      {.name = "accuracy", .percent = true, .larger_is_better = true}},
          .samples = "texts",
          .training = [=, smoothing = options.smoothing](nn::Context& context,
                                                         const nn::Values& in) -> nn::Training {
            const Said one = said(context, network, in, smoothing);
            return {.objectives = {nn::mean_of("loss", one.losses, one.counts)},
                    .metrics = {nn::mean_of("accuracy", one.hits, one.counts)}};
          },
          .inference = [=](nn::Context& context, const nn::Values& in) -> nn::Values {
            return {{"logits", logits_of(context, network, in)}};
          },
          .evaluation = [=](nn::Context& context, const nn::Values& in) -> nn::Values {
            const Said one = said(context, network, in, 0);
            const auto sum = [&](Value* x) {
              return ops::reduce_sum(ops::multiply(ops::cast(x, DataType::fp32), one.counts), {.axes = {1}});
            };
            return {{"losses", sum(one.losses)},
                    {"hits", sum(one.hits)},
                    {"counts", ops::reduce_sum(one.counts, {.axes = {1}})}};
          }};
}

}  // namespace tessera::tasks
