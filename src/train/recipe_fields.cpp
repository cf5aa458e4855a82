#include "recipe_fields.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "tessera/base/error.h"

namespace tessera::train {
namespace {

Limits at_least(double low) {
  return {.low = low};
}
Limits above(double low) {
  return {.low = low, .low_open = true};
}
Limits between(double low, double high) {
  return {.low = low, .high = high};
}
// [0, 1): a probability or decay that must not be certain.
Limits fraction() {
  return {.low = 0, .high = 1, .high_open = true};
}

// Slot of one member, by its chain of names below Recipe.
#define TESSERA_MEMBER(path) [](Recipe& recipe) -> Slot { return &recipe.path; }

std::vector<RecipeField> make_fields() {
  return {
      {.section = "model",
       .key = "name",
       .slot = TESSERA_MEMBER(model.name),
       .documentation = "Network; `tessera models` lists them"},
      {.section = "model",
       .key = "classes",
       .slot = TESSERA_MEMBER(model.classes),
       .documentation = "Outputs of the network; at least `data.classes`",
       .limits = between(1, 1e6),
       .unset = "`data.classes`"},
      {.section = "model",
       .key = "width",
       .slot = TESSERA_MEMBER(model.width),
       .documentation = "Channels of the first stage",
       .limits = between(1, 65536)},
      {.section = "model",
       .key = "blocks",
       .slot = TESSERA_MEMBER(model.blocks),
       .documentation = "Residual blocks of each stage",
       .limits = between(1, 1000)},
      {.section = "model",
       .key = "hidden",
       .slot = TESSERA_MEMBER(model.hidden),
       .documentation = "Units of each hidden layer of a perceptron",
       .limits = between(1, 1 << 20)},
      {.section = "model",
       .key = "dropout",
       .slot = TESSERA_MEMBER(model.dropout),
       .documentation = "Probability of dropping a unit, where the network has dropout",
       .limits = fraction()},
      {.section = "model",
       .key = "weights",
       .slot = TESSERA_MEMBER(model.weights),
       .documentation = "Safetensors file to start from; empty: random weights from `train.seed`"},

      {.section = "data",
       .key = "kind",
       .slot = TESSERA_MEMBER(data.kind),
       .documentation =
           "`idx`: the four files of MNIST and its successors, plain or gzip; `synthetic`: random images, "
           "for measuring speed, needs no files",
       .choices = {"idx", "synthetic"}},
      {.section = "data",
       .key = "path",
       .slot = TESSERA_MEMBER(data.path),
       .documentation = "Folder of the data",
       .used_by = {"idx"}},
      {.section = "data",
       .key = "image_size",
       .slot = TESSERA_MEMBER(data.image_size),
       .documentation = "Height and width of the images, in pixels",
       .limits = between(1, 16384)},
      {.section = "data",
       .key = "channels",
       .slot = TESSERA_MEMBER(data.channels),
       .documentation = "Channels of an image",
       .limits = between(1, 64)},
      {.section = "data",
       .key = "classes",
       .slot = TESSERA_MEMBER(data.classes),
       .documentation = "Classes of the labels",
       .limits = between(1, 1e6)},
      {.section = "data",
       .key = "train_images",
       .slot = TESSERA_MEMBER(data.train_images),
       .documentation = "Training images: only the first so many, or how many to make up",
       .limits = between(1, 1e9),
       .unset = "all of them; `synthetic`: 10000"},
      {.section = "data",
       .key = "test_images",
       .slot = TESSERA_MEMBER(data.test_images),
       .documentation = "The same for the test images",
       .limits = between(1, 1e9),
       .unset = "all of them; `synthetic`: 1000"},
      {.section = "data",
       .key = "shuffle",
       .slot = TESSERA_MEMBER(data.shuffle),
       .documentation = "Whether each epoch visits the training images in a new order"},
      {.section = "data",
       .key = "flip",
       .slot = TESSERA_MEMBER(data.flip),
       .documentation = "Mirror a training image left to right with probability 1/2"},
      {.section = "data",
       .key = "crop_padding",
       .slot = TESSERA_MEMBER(data.crop_padding),
       .documentation =
           "Pixels of zeros around a training image before a random crop back to its size; 0: none",
       .limits = between(0, 4096)},
      {.section = "data",
       .key = "cutout",
       .slot = TESSERA_MEMBER(data.cutout),
       .documentation =
           "Pixels: an area of its square is blanked at a random place of a training image; 0: none",
       .limits = between(0, 4096)},
      {.section = "data",
       .key = "mean",
       .slot = TESSERA_MEMBER(data.mean),
       .documentation = "Mean of each channel, subtracted from pixels scaled to 0..1",
       .limits = between(-1e6, 1e6)},
      {.section = "data",
       .key = "std",
       .slot = TESSERA_MEMBER(data.std),
       .documentation = "Standard deviation of each channel, by which they are then divided",
       .limits = {.low = 0, .high = 1e6, .low_open = true}},
      {.section = "data",
       .key = "prefetch",
       .slot = TESSERA_MEMBER(data.prefetch),
       .documentation = "Batches prepared ahead of the network",
       .limits = between(0, 1024)},

      {.section = "train",
       .key = "epochs",
       .slot = TESSERA_MEMBER(train.epochs),
       .documentation = "Passes over the training images",
       .limits = between(1, 1e6)},
      {.section = "train",
       .key = "batch",
       .slot = TESSERA_MEMBER(train.batch),
       .documentation = "Images of one forward and backward pass",
       .limits = between(1, 1e6)},
      {.section = "train",
       .key = "precision",
       .slot = TESSERA_MEMBER(train.precision),
       .documentation =
           "Type of activations and gradients; weights and sums stay in fp32. `auto`: tf32 on a GPU unless "
           "NVIDIA_TF32_OVERRIDE=0 forbids it, fp32 elsewhere; `fp32`; `tf32`: fp32 whose factors a GPU "
           "rounds to "
           "11 significant bits, exact on a processor; `bf16`; `fp16`",
       .choices = {"auto", "fp32", "tf32", "bf16", "fp16"}},
      {.section = "train",
       .key = "seed",
       .slot = TESSERA_MEMBER(train.seed),
       .documentation = "The one source of all randomness; same seed, same machine, same bits",
       .limits = {.low = 0}},
      {.section = "train",
       .key = "device",
       .slot = TESSERA_MEMBER(train.device),
       .documentation = "`auto` (the fastest present), `cpu`, `cuda`, `cuda:N` or `reference`"},
      {.section = "train",
       .key = "threads",
       .slot = TESSERA_MEMBER(train.threads),
       .documentation = "Processor threads; 0: one per core",
       .limits = between(0, 4096)},
      {.section = "train",
       .key = "accumulate",
       .slot = TESSERA_MEMBER(train.accumulate),
       .documentation = "Batches whose gradients make one update",
       .limits = between(1, 65536)},
      {.section = "train",
       .key = "clip_norm",
       .slot = TESSERA_MEMBER(train.clip_norm),
       .documentation = "Largest norm of all gradients together; 0: not clipped",
       .limits = at_least(0)},
      {.section = "train",
       .key = "smoothing",
       .slot = TESSERA_MEMBER(train.smoothing),
       .documentation = "Label smoothing of the cross-entropy",
       .limits = fraction()},
      {.section = "train",
       .key = "ema_decay",
       .slot = TESSERA_MEMBER(train.ema_decay),
       .documentation = "Decay per update of the running average of the weights that is evaluated; 0: none",
       .limits = fraction()},
      {.section = "train",
       .key = "recompute",
       .slot = TESSERA_MEMBER(train.recompute),
       .documentation =
           "Make cheap activations again for the gradients instead of keeping them: less memory, "
           "the same numbers, a little slower",
       .unset = "those of at most 32 MiB; on a GPU a few"},
      {.section = "train",
       .key = "deterministic",
       .slot = TESSERA_MEMBER(train.deterministic),
       .documentation =
           "The same bits at every run; `false` allows a GPU faster kernels whose sums vary in their order"},
      {.section = "train",
       .key = "evaluate_every",
       .slot = TESSERA_MEMBER(train.evaluate_every),
       .documentation = "Epochs between evaluations; 0: only after the last",
       .limits = between(0, 1e6)},
      {.section = "train",
       .key = "checkpoint_every",
       .slot = TESSERA_MEMBER(train.checkpoint_every),
       .documentation = "Epochs between checkpoints; 0: only after the last",
       .limits = between(0, 1e6)},

      {.section = "optimizer",
       .key = "name",
       .slot = TESSERA_MEMBER(optimizer.name),
       .documentation = "The update rule",
       .choices = {"sgd", "adam", "adamw", "lamb", "lars", "rmsprop"}},
      {.section = "optimizer",
       .key = "learning_rate",
       .slot = TESSERA_MEMBER(optimizer.learning_rate),
       .documentation = "Peak of the learning rate",
       .limits = above(0)},
      {.section = "optimizer",
       .key = "momentum",
       .slot = TESSERA_MEMBER(optimizer.momentum),
       .documentation = "Share of the previous update that is kept",
       .limits = fraction(),
       .used_by = {"sgd", "lars", "rmsprop"}},
      {.section = "optimizer",
       .key = "nesterov",
       .slot = TESSERA_MEMBER(optimizer.nesterov),
       .documentation = "Nesterov's form of momentum",
       .used_by = {"sgd"}},
      {.section = "optimizer",
       .key = "weight_decay",
       .slot = TESSERA_MEMBER(optimizer.weight_decay),
       .documentation =
           "Pull of the weights towards zero: added to the gradient, by `adamw` and `lamb` to the update",
       .limits = at_least(0)},
      {.section = "optimizer",
       .key = "decay_all",
       .slot = TESSERA_MEMBER(optimizer.decay_all),
       .documentation = "Whether biases and the parameters of normalisations are decayed too"},
      {.section = "optimizer",
       .key = "beta1",
       .slot = TESSERA_MEMBER(optimizer.beta1),
       .documentation = "Decay of the mean of the gradient",
       .limits = fraction(),
       .used_by = {"adam", "adamw", "lamb"}},
      {.section = "optimizer",
       .key = "beta2",
       .slot = TESSERA_MEMBER(optimizer.beta2),
       .documentation = "Decay of the mean of its square",
       .limits = fraction(),
       .used_by = {"adam", "adamw", "lamb"}},
      {.section = "optimizer",
       .key = "alpha",
       .slot = TESSERA_MEMBER(optimizer.alpha),
       .documentation = "Decay of the mean square of the gradient",
       .limits = fraction(),
       .used_by = {"rmsprop"}},
      {.section = "optimizer",
       .key = "epsilon",
       .slot = TESSERA_MEMBER(optimizer.epsilon),
       .documentation = "Added to a denominator that may vanish",
       .limits = {.low = 0, .high = 1, .low_open = true},
       .used_by = {"adam", "adamw", "lamb", "lars", "rmsprop"}},
      {.section = "optimizer",
       .key = "trust",
       .slot = TESSERA_MEMBER(optimizer.trust),
       .documentation = "Trust coefficient: each layer's update as a fraction of its weights' norm",
       .limits = above(0),
       .used_by = {"lars"}},

      {.section = "schedule",
       .key = "name",
       .slot = TESSERA_MEMBER(schedule.name),
       .documentation = "Course of the learning rate, set anew at every step",
       .choices = {"constant", "step", "cosine", "polynomial", "one_cycle"}},
      {.section = "schedule",
       .key = "warmup_epochs",
       .slot = TESSERA_MEMBER(schedule.warmup_epochs),
       .documentation = "Epochs of linear rise from `initial` to the peak; may be a fraction",
       .limits = at_least(0),
       .used_by = {"constant", "step", "cosine", "polynomial"}},
      {.section = "schedule",
       .key = "warmup_steps",
       .slot = TESSERA_MEMBER(schedule.warmup_steps),
       .documentation = "The same in steps; only one of the two may be given",
       .limits = between(0, 1e9),
       .used_by = {"constant", "step", "cosine", "polynomial"}},
      {.section = "schedule",
       .key = "milestones",
       .slot = TESSERA_MEMBER(schedule.milestones),
       .documentation = "Epochs, rising, at which the learning rate is multiplied by `gamma`",
       .limits = above(0),
       .used_by = {"step"},
       .unset = "none"},
      {.section = "schedule",
       .key = "gamma",
       .slot = TESSERA_MEMBER(schedule.gamma),
       .documentation = "Factor at each milestone",
       .limits = {.low = 0, .high = 1, .low_open = true},
       .used_by = {"step"}},
      {.section = "schedule",
       .key = "power",
       .slot = TESSERA_MEMBER(schedule.power),
       .documentation = "Exponent of the polynomial; 1: a straight line",
       .limits = {.low = 0, .high = 100, .low_open = true},
       .used_by = {"polynomial"}},
      {.section = "schedule",
       .key = "initial",
       .slot = TESSERA_MEMBER(schedule.initial),
       .documentation = "Learning rate of the first step of a warm-up or cycle, as a fraction of the peak",
       .limits = between(0, 1)},
      {.section = "schedule",
       .key = "final",
       .slot = TESSERA_MEMBER(schedule.final),
       .documentation = "Learning rate after the last step, as a fraction of the peak",
       .limits = between(0, 1),
       .used_by = {"cosine", "polynomial", "one_cycle"}},
      {.section = "schedule",
       .key = "peak",
       .slot = TESSERA_MEMBER(schedule.peak),
       .documentation = "Where the cycle peaks, as a fraction of all steps",
       .limits = {.low = 0, .high = 1, .low_open = true, .high_open = true},
       .used_by = {"one_cycle"}},
  };
}

#undef TESSERA_MEMBER

}  // namespace

const std::vector<RecipeField>& recipe_fields() {
  static const std::vector<RecipeField> fields = make_fields();
  return fields;
}

const RecipeField* find_field(std::string_view section, std::string_view key) {
  for (const RecipeField& field : recipe_fields()) {
    if (field.section == section && field.key == key) return &field;
  }
  return nullptr;
}

const RecipeField& section_selector(std::string_view section) {
  const auto& fields = recipe_fields();
  const auto first = std::find_if(fields.begin(), fields.end(),
                                  [&](const RecipeField& field) { return field.section == section; });
  require(first != fields.end(), ErrorCode::internal, "recipes have no section '{}'", section);
  return *first;
}

bool Limits::holds(double value) const {
  return std::isfinite(value) && (low_open ? value > low : value >= low) &&
         (high_open ? value < high : value <= high);
}

std::string Limits::describe() const {
  const bool has_low = std::isfinite(low);
  const bool has_high = std::isfinite(high);
  if (has_low && has_high && !low_open && !high_open)
    return fmt::format("from {:.15g} to {:.15g}", low, high);
  std::string text = has_low ? fmt::format("{} {:.15g}", low_open ? "above" : "at least", low) : "";
  if (has_high) {
    text += fmt::format("{}{} {:.15g}", text.empty() ? "" : " and ", high_open ? "below" : "at most", high);
  }
  return text;
}

}  // namespace tessera::train
