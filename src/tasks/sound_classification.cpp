#include "tessera/tasks/sound_classification.h"

#include <string>

#include "tessera/base/error.h"
#include "tessera/nn/layers.h"

#include "tasks/class_measures.h"
#include "tasks/counted_labels.h"

namespace tessera::tasks {
namespace {

constexpr int64_t kFirstKernel = 5;
constexpr int64_t kKernel = 3;

ops::Expression normalized(nn::Context& context, const std::string& name, Value* x, int64_t outputs,
                           int64_t kernel, int64_t stride) {
  Value* y = nn::convolution(
      context, name + ".conv", x, outputs, kernel,
      {.stride = stride, .padding = kernel / 2, .bias = false, .weight = nn::kaiming_normal_fan_out()});
  return nn::batch_norm(context, name + ".bn", y);
}

ops::Expression block(nn::Context& context, const std::string& name, Value* x, int64_t outputs) {
  Value* y = ops::relu(normalized(context, name + ".1", x, outputs, kKernel, 2));
  y = normalized(context, name + ".2", y, outputs, kKernel, 1);
  return ops::relu(normalized(context, name + ".shortcut", x, outputs, 1, 2) + y);
}

// Every second frame, as a convolution of stride 2 leaves them.
Value* every_second(Value* frames) {
  return ops::slice(frames, {0, 0}, {ops::kWholeAxis, ops::kWholeAxis}, {1, 2});
}

Value* logits(nn::Context& context, const SoundClassificationOptions& options, const nn::Values& inputs) {
  Value* sounds = inputs["sounds"];
  Value* lengths = inputs["lengths"];
  if (context.training()) {
    const nn::AugmentedSounds augmented = nn::augment_sounds(context, sounds, lengths, options.augmentation);
    sounds = augmented.sounds;
    lengths = augmented.lengths;
  }
  Value* frames = nn::sounding_frames(lengths, sounds);
  ops::Expression x = nn::normalize_bands(nn::log_mel_spectrogram(sounds, options.spectrogram), frames);
  if (context.training()) x = nn::mask_spectrogram(context, x, options.masks);
  x = ops::relu(normalized(context, "stem", x, options.widths.front(), kFirstKernel, 2));
  frames = every_second(frames);
  for (size_t stage = 0; stage < options.widths.size(); ++stage) {
    x = block(context, "stage" + std::to_string(stage + 1), x, options.widths[stage]);
    frames = every_second(frames);
  }
  const SymbolicShape& shape = x->shape();
  Value* weights = ops::cast(ops::reshape(frames, {shape[0], shape[1], 1}), x->data_type());
  Value* count = ops::reduce_sum(weights, {.axes = {1}});
  count = ops::maximum(count, ops::constant_like(count, 1));
  const ops::Expression mean = ops::reduce_sum(x * weights, {.axes = {1}});
  return nn::linear(context, "output", nn::dropout(context, mean / count, options.dropout), options.classes);
}

}  // namespace

nn::Task sound_classification(const SoundClassificationOptions& options) {
  const auto code = ErrorCode::invalid_argument;
  nn::check_spectrogram(options.spectrogram, options.hop);
  nn::check_sound_augmentation(options.augmentation);
  require(options.classes > 0 && !options.widths.empty(), code, "a classifier of {} classes with {} stages",
          options.classes, options.widths.size());
  for (const int64_t width : options.widths) require(width > 0, code, "a stage of {} channels", width);
  const Dimension batch = Dimension::symbol("batch");
  const nn::Loss loss = options.loss;
  return {.name = "sound_classification",
          .network = "sound_convolutions",
          .inputs = {{"sounds", {DataType::int16, {batch, Dimension::symbol("steps"), options.hop}}},
                     {"lengths", {DataType::int32, {batch}}},
                     {"labels", {DataType::int32, {batch}}}},
          .metrics = class_metrics(options.classes),
          .samples = "sounds",
          .training =
              [=](nn::Context& context, const nn::Values& inputs) {
                Value* scores = logits(context, options, inputs);
                const CountedLabels rows = counted_labels(inputs["labels"]);
                return class_measures(loss.examples(scores, rows.labels), scores, rows.labels, rows.counts);
              },
          .inference = [=](nn::Context& context, const nn::Values& inputs) -> nn::Values {
            return {{"logits", logits(context, options, inputs)}};
          },
          .evaluation =
              [=](nn::Context& context, const nn::Values& inputs) {
                return class_evaluation(loss, ops::cast(logits(context, options, inputs), DataType::fp32),
                                        inputs["labels"], options.classes);
              }};
}

}  // namespace tessera::tasks
