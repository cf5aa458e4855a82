#include "onnx/windows.h"

#include <algorithm>
#include <numeric>

#include "onnx/axis_order.h"

namespace tessera::onnx {
namespace {

constexpr int64_t kMostTaps = 65536;

std::vector<int64_t> per_axis(const program::Call& call, const char* name, size_t axes) {
  std::vector<int64_t> values = call.integers(name);
  if (values.empty()) values.assign(axes, 1);
  call.require(values.size() == axes,
               fmt::format("{} is to have a number for each of {} spatial axes", name, axes));
  for (const int64_t value : values)
    call.require(value > 0 && value < (int64_t{1} << 31), fmt::format("{} is to be positive", name));
  return values;
}

int64_t divide_up(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

// As many windows as pixels, divided by the stride.
void pad_alike(Windows& windows, size_t axis, int64_t image, bool more_before) {
  const int64_t count = divide_up(image, windows.strides[axis]);
  const int64_t total =
      std::max<int64_t>(0, (count - 1) * windows.strides[axis] + windows.reach(axis) - image);
  windows.low[axis] = more_before ? total - total / 2 : total / 2;
  windows.high[axis] = total - windows.low[axis];
}

}  // namespace

int64_t Windows::taps() const {
  return std::accumulate(window.begin(), window.end(), int64_t{1}, std::multiplies<>());
}

bool Windows::is_plain() const {
  if (taps() > 255 || axes() > 3) return false;
  for (size_t axis = 0; axis < axes(); ++axis) {
    if (dilations[axis] != 1 || low[axis] >= window[axis] || high[axis] >= window[axis]) return false;
  }
  return true;
}

Windows windows_of(const program::Call& call, const Shape& image, std::vector<int64_t> window) {
  call.require(image.size() >= 3, "its operand is to be [N, C, spatial...]");
  Windows windows;
  windows.window = std::move(window);
  const size_t axes = windows.axes();
  call.require(axes + 2 == image.size(), "the window is to have an extent for each spatial axis");
  for (const int64_t extent : windows.window)
    call.require(extent > 0 && extent < (int64_t{1} << 31), "the window is to have positive extents");
  windows.strides = per_axis(call, "strides", axes);
  windows.dilations = per_axis(call, "dilations", axes);
  const std::string automatic = call.text("auto_pad", "NOTSET");
  std::vector<int64_t> pads = call.integers("pads");
  if (pads.empty()) pads.assign(2 * axes, 0);
  call.require(pads.size() == 2 * axes, "there are to be two pads for each spatial axis");
  windows.low.assign(pads.begin(), pads.begin() + static_cast<std::ptrdiff_t>(axes));
  windows.high.assign(pads.begin() + static_cast<std::ptrdiff_t>(axes), pads.end());
  const bool rounds_up = call.integer("ceil_mode", 0) != 0;
  for (size_t axis = 0; axis < axes; ++axis) {
    const int64_t extent = image[axis + 2];
    if (automatic == "VALID") windows.low[axis] = windows.high[axis] = 0;
    if (automatic == "SAME_UPPER" || automatic == "SAME_LOWER")
      pad_alike(windows, axis, extent, automatic == "SAME_LOWER");
    windows.given_high.push_back(windows.high[axis]);
    const int64_t room = extent + windows.low[axis] + windows.high[axis] - windows.reach(axis);
    call.require(windows.low[axis] >= 0 && windows.high[axis] >= 0 && room >= 0, "not even one window fits");
    const int64_t stride = windows.strides[axis];
    int64_t count = (rounds_up ? divide_up(room, stride) : room / stride) + 1;
    if (rounds_up && (count - 1) * stride >= extent + windows.low[axis])
      --count;  // it would begin after the image
    const int64_t needed = (count - 1) * stride + windows.reach(axis) - extent - windows.low[axis];
    windows.high[axis] = std::max(windows.high[axis], needed);
    windows.counts.push_back(count);
  }
  return windows;
}

Value* padded(Value* x, const Windows& windows, double value) {
  std::vector<int64_t> low{0, 0};
  std::vector<int64_t> high{0, 0};
  low.insert(low.end(), windows.low.begin(), windows.low.end());
  high.insert(high.end(), windows.high.begin(), windows.high.end());
  const auto none = [](const std::vector<int64_t>& pads) {
    return std::all_of(pads.begin(), pads.end(), [](int64_t pad) { return pad == 0; });
  };
  return none(low) && none(high) ? x : ops::pad(x, low, high, value);
}

std::vector<Value*> taps_of(Value* x, const Windows& windows) {
  require(windows.taps() <= kMostTaps, ErrorCode::unsupported, "a window of {} elements", windows.taps());
  std::vector<Value*> taps;
  std::vector<int64_t> tap(windows.axes(), 0);
  for (int64_t i = 0; i < windows.taps(); ++i) {
    std::vector<int64_t> starts{0, 0};
    std::vector<int64_t> limits{ops::kWholeAxis, ops::kWholeAxis};
    std::vector<int64_t> strides{1, 1};
    int64_t rest = i;
    for (size_t axis = windows.axes(); axis-- > 0;) {
      tap[axis] = rest % windows.window[axis];
      rest /= windows.window[axis];
    }
    for (size_t axis = 0; axis < windows.axes(); ++axis) {
      starts.push_back(tap[axis] * windows.dilations[axis]);
      limits.push_back(starts.back() + (windows.counts[axis] - 1) * windows.strides[axis] + 1);
      strides.push_back(windows.strides[axis]);
    }
    taps.push_back(ops::slice(x, starts, limits, strides));
  }
  return taps;
}

Value* channels_last(Value* x) {
  return transpose(x, channels_last_permutation(x->type().rank()));
}

Value* channels_first(Value* x) {
  return transpose(x, channels_first_permutation(x->type().rank()));
}

}  // namespace tessera::onnx
