#include "data/image/resize.h"

#include <algorithm>
#include <cmath>

#include "tessera/base/error.h"

namespace tessera::data {
namespace {

constexpr int kWeightBits = 32 - 8 - 2;  // Pillow's: a sum of 8-bit values with room for overshooting

double area_filter(double x) {
  return x > -0.5 && x <= 0.5 ? 1.0 : 0.0;
}

double bilinear_filter(double x) {
  return std::max(1 - std::abs(x), 0.0);
}

// Keys, "Cubic convolution interpolation for digital image processing" (1981), whose slope at 1 is free.
double bicubic_filter(double x) {
  constexpr double kSlope = -0.5;
  x = std::abs(x);
  if (x < 1) return ((kSlope + 2) * x - (kSlope + 3)) * x * x + 1;
  return x < 2 ? (((x - 5) * x + 8) * x - 4) * kSlope : 0.0;
}

struct Kernel {
  double (*weight)(double x);
  double support;
};

Kernel kernel_of(ResizeFilter filter) {
  switch (filter) {
    case ResizeFilter::area:
      return {area_filter, 0.5};
    case ResizeFilter::bilinear:
      return {bilinear_filter, 1};
    default:
      return {bicubic_filter, 2};
  }
}

// One pixel each: the one in whose area the center lies.
void choose_nearest(AxisWeights& axis, int64_t available, double begin, double scale) {
  axis.stride = 1;
  for (int64_t i = 0; i < axis.count; ++i) {
    const auto place = static_cast<int64_t>(std::floor(begin + (static_cast<double>(i) + 0.5) * scale));
    axis.first.push_back(std::clamp<int64_t>(place, 0, available - 1));
    axis.taps.push_back(1);
    axis.weights.push_back(1);
  }
}

void mirror(AxisWeights& axis) {
  std::ranges::reverse(axis.first);
  std::ranges::reverse(axis.taps);
  for (int64_t low = 0, high = axis.count - 1; low < high; ++low, --high) {
    std::swap_ranges(axis.weights.begin() + low * axis.stride, axis.weights.begin() + (low + 1) * axis.stride,
                     axis.weights.begin() + high * axis.stride);
  }
}

std::vector<int32_t> whole_weights(const AxisWeights& axis) {
  std::vector<int32_t> whole;
  whole.reserve(axis.weights.size());
  for (const double weight : axis.weights)
    whole.push_back(static_cast<int32_t>(std::lround(weight * (1 << kWeightBits))));
  return whole;
}

uint8_t rounded(int32_t sum) {
  return static_cast<uint8_t>(std::clamp((sum + (1 << (kWeightBits - 1))) >> kWeightBits, 0, 255));
}

// Columns first and then rows, both into bytes: Pillow's order.
void resize_wide(const PixelView& source, const AxisWeights& rows, const AxisWeights& columns,
                 std::span<uint8_t> target, ResizeScratch& scratch) {
  const int64_t channels = source.channels;
  const int64_t row_values = columns.count * channels;
  const std::vector<int32_t> column_weights = whole_weights(columns);
  scratch.bytes.resize(static_cast<size_t>(source.height * row_values));
  const auto [top, bottom] = std::ranges::minmax(rows.first);
  const int64_t end = std::min(bottom + rows.stride, source.height);
  for (int64_t y = top; y < end; ++y) {
    const uint8_t* const line = source.data + y * source.stride;
    uint8_t* out = scratch.bytes.data() + y * row_values;
    for (int64_t x = 0; x < columns.count; ++x) {
      const int32_t* const weights = column_weights.data() + x * columns.stride;
      const uint8_t* const first = line + columns.first[static_cast<size_t>(x)] * channels;
      const int64_t taps = columns.taps[static_cast<size_t>(x)];
      for (int64_t c = 0; c < channels; ++c) {
        int32_t sum = 0;
        for (int64_t tap = 0; tap < taps; ++tap) sum += weights[tap] * first[tap * channels + c];
        *out++ = rounded(sum);
      }
    }
  }
  const std::vector<int32_t> row_weights = whole_weights(rows);
  scratch.wide.resize(static_cast<size_t>(row_values));
  for (int64_t y = 0; y < rows.count; ++y) {
    std::ranges::fill(scratch.wide, 0);
    for (int64_t tap = 0; tap < rows.taps[static_cast<size_t>(y)]; ++tap) {
      const int32_t weight = row_weights[static_cast<size_t>(y * rows.stride + tap)];
      const uint8_t* const line =
          scratch.bytes.data() + (rows.first[static_cast<size_t>(y)] + tap) * row_values;
      for (int64_t i = 0; i < row_values; ++i) scratch.wide[static_cast<size_t>(i)] += weight * line[i];
    }
    std::ranges::transform(scratch.wide, target.begin() + y * row_values, rounded);
  }
}

}  // namespace

AxisWeights axis_weights(int64_t available, double begin, double extent, int64_t count, ResizeFilter filter,
                         bool mirrored) {
  AxisWeights axis{.count = count};
  const double scale = extent / static_cast<double>(count);
  if (filter == ResizeFilter::nearest) {
    choose_nearest(axis, available, begin, scale);
    if (mirrored) mirror(axis);
    return axis;
  }
  const Kernel kernel = kernel_of(filter);
  const double wide = std::max(scale, 1.0);
  const double support = kernel.support * wide;
  axis.stride = static_cast<int64_t>(std::ceil(support)) * 2 + 1;
  axis.weights.assign(static_cast<size_t>(count * axis.stride), 0);
  for (int64_t i = 0; i < count; ++i) {
    const double center = begin + (static_cast<double>(i) + 0.5) * scale;
    const auto first =
        std::clamp<int64_t>(static_cast<int64_t>(std::floor(center - support + 0.5)), 0, available - 1);
    const auto end =
        std::clamp<int64_t>(static_cast<int64_t>(std::floor(center + support + 0.5)), first + 1, available);
    double* const weights = axis.weights.data() + i * axis.stride;
    double sum = 0;
    for (int64_t tap = 0; tap < end - first; ++tap) {
      weights[tap] = kernel.weight((static_cast<double>(first + tap) - center + 0.5) / wide);
      sum += weights[tap];
    }
    if (sum == 0) weights[0] = sum = 1;  // a center outside of all pixels
    for (int64_t tap = 0; tap < end - first; ++tap) weights[tap] /= sum;
    axis.first.push_back(first);
    axis.taps.push_back(end - first);
  }
  if (mirrored) mirror(axis);
  return axis;
}

void resize(const PixelView& source, const Box& box, ResizeFilter filter, bool mirrored, int64_t height,
            int64_t width, std::span<uint8_t> target, ResizeScratch& scratch) {
  const AxisWeights rows = axis_weights(source.height, box.top, box.height, height, filter, false);
  const AxisWeights columns = axis_weights(source.width, box.left, box.width, width, filter, mirrored);
  if (can_resize_narrow(source, filter, rows, columns)) {
    resize_narrow(source, rows, columns, target, scratch);
  } else {
    resize_wide(source, rows, columns, target, scratch);
  }
}

}  // namespace tessera::data
