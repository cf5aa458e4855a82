#include "tessera/nn/volume_augmentation.h"

#include "tessera/base/error.h"
#include "tessera/ops/functions.h"

#include "nn/draws.h"

namespace tessera::nn {
namespace {

constexpr size_t kAxes = 3;

// Numbers of the volumes of a batch, [batch, 1, 1, 1].
Value* of_voxels(Value* numbers) {
  return ops::reshape(numbers, {numbers->shape()[0], 1, 1, 1});
}
// And for each of their channels, [batch, 1, 1, 1, 1].
Value* of_volumes(Value* numbers) {
  return ops::reshape(numbers, {numbers->shape()[0], 1, 1, 1, 1});
}

std::array<int64_t, kAxes> extents_of(const Value* volumes) {
  const SymbolicShape& shape = volumes->shape();
  require(shape.size() == kAxes + 2, ErrorCode::invalid_argument,
          "volumes of shape {}, expected [batch, D, H, W, C]", to_string(shape));
  return {shape[1].value(), shape[2].value(), shape[3].value()};
}

// What `draw` makes where it happens.
template <typename Draw>
Value* perhaps(Draws& draws, double probability, double otherwise, const Draw& draw) {
  Value* happens = draws.happens(probability);
  Value* drawn = draw();
  return ops::select(happens, drawn, ops::constant_like(drawn, otherwise));
}

Value* draw_gamma(Draws& draws, double low, double high) {
  if (low >= 1 || high <= 1) return draws.between(low, high);
  Value* below = draws.happens(0.5);
  Value* share = draws.uniform();
  return ops::select(below, ops::add(ops::multiply(share, 1 - low), low),
                     ops::add(ops::multiply(share, high - 1), 1));
}

VolumeParts draw_parts(Draws& draws, const std::array<int64_t, kAxes>& volume,
                       const std::array<int64_t, kAxes>& size, double flip) {
  VolumeParts parts{};
  for (size_t axis = 0; axis < kAxes; ++axis) {
    const auto places = static_cast<double>(volume[axis] - size[axis] + 1);
    Value* start = ops::clip(ops::floor(ops::multiply(draws.uniform(), places)), 0, places - 1);
    parts.starts[axis] = ops::cast(start, DataType::int32);
    parts.reversed[axis] = draws.happens(flip);
  }
  return parts;
}

}  // namespace

Value* cut_volumes(Value* volumes, const VolumeParts& parts, const std::array<int64_t, 3>& size) {
  const std::array<int64_t, kAxes> volume = extents_of(volumes);
  const SymbolicShape& shape = volumes->shape();
  // Voxels of a whole batch are counted; of small volumes there are not so many that 32 bits do not hold
  // them.
  constexpr int64_t kFew = int64_t{1} << 21;
  const DataType type = volume[0] * volume[1] * volume[2] < kFew ? DataType::int32 : DataType::int64;
  Value* voxel = ops::iota(volumes->graph(), {shape[0], 1, 1, 1}, 0, type);
  for (size_t axis = 0; axis < kAxes; ++axis) {
    SymbolicShape along{1, 1, 1, 1};
    along[axis + 1] = size[axis];
    Value* forward = ops::iota(volumes->graph(), along, static_cast<int64_t>(axis) + 1, type);
    Value* backward = ops::subtract(static_cast<double>(size[axis] - 1), forward);
    Value* place = ops::add(ops::select(of_voxels(parts.reversed[axis]), backward, forward),
                            of_voxels(ops::cast(parts.starts[axis], type)));
    voxel = ops::add(ops::multiply(voxel, static_cast<double>(volume[axis])), place);
  }
  return ops::gather(ops::reshape(volumes, {shape[0] * shape[1] * shape[2] * shape[3], shape[4]}), voxel);
}

Value* adjust_gamma(Value* volumes, Value* gamma) {
  constexpr double kLeastRange = 1e-7;
  Value* numbers = ops::cast(volumes, DataType::fp32);
  const ops::ReduceOptions whole{.axes = {1, 2, 3, 4}, .keep_dimensions = true};
  Value* low = ops::reduce_min(numbers, whole);
  Value* range = ops::add(ops::subtract(ops::reduce_max(numbers, whole), low), kLeastRange);
  Value* share = ops::divide(ops::subtract(numbers, low), range);
  return ops::add(ops::multiply(ops::power(share, of_volumes(gamma)), range), low);
}

void check_volume_augmentation(const VolumeAugmentationOptions& options,
                               const std::array<int64_t, 3>& volume) {
  const auto code = ErrorCode::invalid_argument;
  const auto hold = [&](const char* name, double value, double high) {
    require(value >= 0 && value <= high, code, "{} of volumes is {}, expected 0 to {}", name, value, high);
  };
  if (options.crop.has_value()) {
    const std::array<int64_t, kAxes>& crop = *options.crop;
    for (size_t axis = 0; axis < kAxes; ++axis) {
      require(crop[axis] > 0 && crop[axis] <= volume[axis], code,
              "parts of {}x{}x{} voxels of volumes of {}x{}x{}", crop[0], crop[1], crop[2], volume[0],
              volume[1], volume[2]);
    }
  }
  hold("flip", options.flip, 1);
  hold("brightness", options.brightness, 1);
  hold("brightness_probability", options.brightness_probability, 1);
  hold("noise", options.noise, 1e6);
  hold("noise_probability", options.noise_probability, 1);
  hold("gamma_probability", options.gamma_probability, 1);
  require(options.minimum_gamma >= 0.05 && options.minimum_gamma <= options.maximum_gamma &&
              options.maximum_gamma <= 20,
          code, "gamma of volumes is from {} to {}, expected 0.05 <= minimum <= maximum <= 20",
          options.minimum_gamma, options.maximum_gamma);
}

LabeledVolumes augment_volumes(Context& context, const LabeledVolumes& labeled,
                               const VolumeAugmentationOptions& options) {
  auto [volumes, labels] = labeled;
  const std::array<int64_t, kAxes> extents = extents_of(volumes);
  check_volume_augmentation(options, extents);
  require(labels == nullptr || extents_of(labels) == extents, ErrorCode::invalid_argument,
          "labels of other voxels than the volumes'");
  const Dimension batch = volumes->shape()[0];
  Draws draws(context, batch, 14);
  if (options.crop.has_value() || options.flip > 0) {
    const std::array<int64_t, kAxes> size = options.crop.value_or(extents);
    const VolumeParts parts = draw_parts(draws, extents, size, options.flip);
    volumes = cut_volumes(volumes, parts, size);
    if (labels != nullptr) labels = cut_volumes(labels, parts, size);
  }
  volumes = ops::cast(volumes, DataType::fp32);
  if (options.brightness > 0) {
    Value* factor = perhaps(draws, options.brightness_probability, 1,
                            [&] { return draws.between(1 - options.brightness, 1 + options.brightness); });
    volumes = ops::multiply(volumes, of_volumes(factor));
  }
  if (options.noise > 0) {
    Value* deviation =
        perhaps(draws, options.noise_probability, 0, [&] { return draws.between(0, options.noise); });
    Value* noise = context.own_rows(ops::random_normal(
        context.random_counter(), context.whole_batch(volumes->shape()), context.next_random_stream()));
    volumes = ops::add(volumes, ops::multiply(noise, of_volumes(deviation)));
  }
  if (options.minimum_gamma != 1 || options.maximum_gamma != 1) {
    Value* gamma = perhaps(draws, options.gamma_probability, 1,
                           [&] { return draw_gamma(draws, options.minimum_gamma, options.maximum_gamma); });
    volumes = adjust_gamma(volumes, gamma);
  }
  return {volumes, labels};
}

}  // namespace tessera::nn
