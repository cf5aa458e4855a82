// Conv, ConvTranspose, Col2Im.
#include <algorithm>

#include "onnx/windows.h"

namespace tessera::onnx {
namespace {

std::vector<int64_t> window_of(const program::Call& call, const Shape& weight) {
  call.require(weight.size() >= 3, "its weight is to be [K, C, spatial...]");
  std::vector<int64_t> window = call.integers("kernel_shape");
  std::vector<int64_t> own(weight.begin() + 2, weight.end());
  call.require(window.empty() || window == own, "kernel_shape is not the weight's");
  return own;
}

Value* with_bias(LowerCall& call, Value* y) {
  if (!call.has(2)) return y;
  return ops::add(y, call.operand(2));  // channels are last here
}

void lower_convolution(LowerCall& call) {
  Value* x = call.operand(0);
  Value* weight = call.operand(1);
  const Windows windows = windows_of(call, shape_of(x), window_of(call, shape_of(weight)));
  const ops::ConvolutionOptions options{windows.strides, windows.low, windows.high, windows.dilations,
                                        call.integer("group", 1)};
  call.result(
      0, channels_first(with_bias(call, ops::convolution(channels_last(x), channels_last(weight), options))));
}

// What a transposed convolution makes without padding, and what of it is kept.
struct Enlarged {
  std::vector<int64_t> low;    // cut off before
  std::vector<int64_t> sizes;  // kept; zeros where there is no more
};

Enlarged enlarged(const program::Call& call, const Shape& image, const Windows& windows) {
  const std::vector<int64_t> wanted = call.integers("output_shape");
  std::vector<int64_t> extra = call.integers("output_padding");
  if (extra.empty()) extra.assign(windows.axes(), 0);
  call.require(extra.size() == windows.axes(), "output_padding is to have a number for each spatial axis");
  const std::string automatic = call.text("auto_pad", "NOTSET");
  const bool alike = automatic == "SAME_UPPER" || automatic == "SAME_LOWER";
  Enlarged result;
  for (size_t axis = 0; axis < windows.axes(); ++axis) {
    const int64_t full = (image[axis + 2] - 1) * windows.strides[axis] + windows.reach(axis) + extra[axis];
    int64_t size = full - windows.low[axis] - windows.given_high[axis];
    int64_t low = windows.low[axis];
    if (!wanted.empty() || alike) {
      // output_shape may also name batch and channels.
      size = wanted.empty() ? image[axis + 2] * windows.strides[axis]
                            : wanted[wanted.size() - windows.axes() + axis];
      const int64_t total = std::max<int64_t>(0, full - size);
      low = automatic == "SAME_UPPER" ? total / 2 : total - total / 2;
    }
    call.require(size >= 0, "padding takes away more than there is");
    result.low.push_back(low);
    result.sizes.push_back(size);
  }
  return result;
}

// Attributes of windows whose padding is that of the result, for which the image need not be large enough.
Windows transposed_windows(const program::Call& call, const Shape& image,
                           const std::vector<int64_t>& window) {
  Windows windows;
  windows.window = window;
  const size_t axes = window.size();
  call.require(image.size() == axes + 2, "the window is to have an extent for each spatial axis");
  const auto numbers = [&](const char* name, size_t count, int64_t otherwise) {
    std::vector<int64_t> values = call.integers(name);
    if (values.empty()) values.assign(count, otherwise);
    call.require(values.size() == count, fmt::format("{} is to have {} numbers", name, count));
    return values;
  };
  windows.strides = numbers("strides", axes, 1);
  windows.dilations = numbers("dilations", axes, 1);
  const std::vector<int64_t> pads = numbers("pads", 2 * axes, 0);
  windows.low.assign(pads.begin(), pads.begin() + static_cast<std::ptrdiff_t>(axes));
  windows.given_high.assign(pads.begin() + static_cast<std::ptrdiff_t>(axes), pads.end());
  if (call.text("auto_pad", "NOTSET") == "VALID") {
    windows.low.assign(axes, 0);
    windows.given_high.assign(axes, 0);
  }
  return windows;
}

void lower_transposed_convolution(LowerCall& call) {
  Value* x = call.operand(0);
  Value* weight = call.operand(1);
  const Shape image = shape_of(x);
  const Windows windows = transposed_windows(call, image, window_of(call, shape_of(weight)));
  const Enlarged kept = enlarged(call, image, windows);
  const ops::ConvolutionOptions options{.strides = windows.strides,
                                        .padding_low = std::vector<int64_t>(windows.axes(), 0),
                                        .dilations = windows.dilations,
                                        .groups = call.integer("group", 1)};
  Value* y = ops::transposed_convolution(channels_last(x), channels_last(weight), options,
                                         std::vector<int64_t>(windows.axes(), 0));
  for (size_t i = 0; i < windows.axes(); ++i) {
    const auto axis = static_cast<int64_t>(i) + 1;
    const int64_t size = extent(y, axis);
    const int64_t limit = std::min(size, kept.low[i] + kept.sizes[i]);
    std::vector<int64_t> low(static_cast<size_t>(y->type().rank()), 0);
    std::vector<int64_t> high = low;
    low[i + 1] = std::max<int64_t>(0, -kept.low[i]);
    y = slice_axis(y, axis, std::min(std::max<int64_t>(0, kept.low[i]), limit), limit);
    high[i + 1] = kept.sizes[i] - low[i + 1] - extent(y, axis);
    if (low[i + 1] != 0 || high[i + 1] != 0) y = ops::pad(y, low, high, 0);
  }
  call.result(0, channels_first(with_bias(call, y)));
}

// Columns [N, C * window, windows] summed where they came from.
void lower_columns_to_image(LowerCall& call) {
  Value* columns = call.operand(0);
  const std::vector<int64_t> image = call.known_integers(1);
  const std::vector<int64_t> window = call.known_integers(2);
  const Shape shape = shape_of(columns);
  call.require(shape.size() == 3 && image.size() == window.size(),
               "it takes columns [N, C * window, windows]");
  const int64_t taps = product(window, 0, window.size());
  call.require(taps > 0 && shape[1] % taps == 0, "its columns are not made of such windows");
  Shape whole{shape[0], shape[1] / taps};
  whole.insert(whole.end(), image.begin(), image.end());
  const Windows windows = windows_of(call, whole, window);
  Shape parts{shape[0], whole[1], taps};
  parts.insert(parts.end(), windows.counts.begin(), windows.counts.end());
  Value* apart = reshape(columns, parts);
  Value* sum = nullptr;
  for (int64_t tap = 0; tap < taps; ++tap) {
    std::vector<int64_t> low{0, 0};
    std::vector<int64_t> high{0, 0};
    std::vector<int64_t> interior{0, 0};
    int64_t rest = tap;
    std::vector<int64_t> place(window.size());
    for (size_t axis = window.size(); axis-- > 0;) {
      place[axis] = rest % window[axis] * windows.dilations[axis];
      rest /= window[axis];
    }
    for (size_t axis = 0; axis < window.size(); ++axis) {
      const int64_t covered = (windows.counts[axis] - 1) * windows.strides[axis] + 1;
      low.push_back(place[axis]);
      high.push_back(image[axis] + windows.low[axis] + windows.high[axis] - covered - place[axis]);
      interior.push_back(windows.strides[axis] - 1);
    }
    Value* part = ops::pad(squeeze(slice_axis(apart, 2, tap, tap + 1), {2}), low, high, 0, interior);
    sum = sum == nullptr ? part : ops::add(sum, part);
  }
  for (size_t axis = 0; axis < window.size(); ++axis) {
    sum = slice_axis(sum, static_cast<int64_t>(axis) + 2, windows.low[axis], windows.low[axis] + image[axis]);
  }
  call.result(0, sum);
}

const RuleRegistrations kRegistration{
    {.name = "Conv", .lower = lower_convolution},
    {.name = "ConvTranspose", .lower = lower_transposed_convolution},
    {.name = "Col2Im", .lower = lower_columns_to_image},
};

}  // namespace
}  // namespace tessera::onnx
