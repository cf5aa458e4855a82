// Augmentation of volumes: operators at the head of a training graph, one definition for all devices.
//
// Volumes are [batch, D, H, W, C]. What is drawn is drawn by the graph from its counter of random numbers,
// for the rows of all ranks: it depends on (seed, step, row) alone.
#pragma once

#include <array>
#include <optional>

#include "tessera/nn/context.h"

namespace tessera::nn {

// Of each volume, along D, H and W: where its part begins, int32 [batch], and whether that is turned around,
// boolean [batch].
struct VolumeParts {
  std::array<Value*, 3> starts;
  std::array<Value*, 3> reversed;
};
// The parts of that size, [batch, ..., C] of the volumes' type; they must lie inside.
Value* cut_volumes(Value* volumes, const VolumeParts& parts, const std::array<int64_t, 3>& size);

// Raises what a volume's numbers are of its range, 0 for its smallest and 1 for its largest, to a power of
// its own, and takes them back to that range. gamma: fp32 [batch]; 1 changes nothing but by rounding. fp32.
Value* adjust_gamma(Value* volumes, Value* gamma);

struct VolumeAugmentationOptions {
  std::optional<std::array<int64_t, 3>> crop = {};  // D, H, W of a part at a random place; none: all of it
  double flip = 0;        // probability that it is turned around, of each of its three axes by itself
  double brightness = 0;  // a factor uniform in 1 - x to 1 + x, at most 1
  double brightness_probability = 1;
  double noise = 0;  // normal noise, whose deviation is uniform in 0 to x, of each volume one
  double noise_probability = 1;
  // A gamma uniform in low to 1 or in 1 to high, as likely as each other, where 1 lies between them; else
  // uniform in low to high.
  double minimum_gamma = 1;  // at least 0.05
  double maximum_gamma = 1;  // at most 20
  double gamma_probability = 1;
};
// Throws Error(invalid_argument) naming the option that is out of range, or the crop that is larger than the
// volume, [D, H, W].
void check_volume_augmentation(const VolumeAugmentationOptions& options,
                               const std::array<int64_t, 3>& volume);

// A part, turned around, brightness, noise, then gamma; volumes in fp32. The labels of voxels, [batch, D, H,
// W, K], follow as they are in their own type, and so would masks; null: there are none.
struct LabeledVolumes {
  Value* volumes;
  Value* labels;
};
LabeledVolumes augment_volumes(Context& context, const LabeledVolumes& labeled,
                               const VolumeAugmentationOptions& options);

}  // namespace tessera::nn
