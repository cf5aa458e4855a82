// Windows over images as convolutions and pools of the format describe them.
#pragma once

#include <vector>

#include "onnx/lowering.h"

namespace tessera::onnx {

// One number per spatial axis each.
struct Windows {
  std::vector<int64_t> window;
  std::vector<int64_t> strides;
  std::vector<int64_t> dilations;
  std::vector<int64_t> low;   // padding before the image
  std::vector<int64_t> high;  // after it; more than the attributes say where the last window reaches beyond
  std::vector<int64_t> given_high;
  std::vector<int64_t> counts;  // of windows

  size_t axes() const { return window.size(); }
  int64_t reach(size_t axis) const { return dilations[axis] * (window[axis] - 1) + 1; }
  int64_t taps() const;
  // Whether the frame's pools take them.
  bool is_plain() const;
};

// From the attributes strides, dilations, pads, auto_pad and ceil_mode, for an image [N, C, spatial...].
Windows windows_of(const program::Call& call, const Shape& image, std::vector<int64_t> window);

// For each tap of the windows, row-major, what stands there in each window: of x [N, C, spatial...] that is
// padded already.
std::vector<Value*> taps_of(Value* x, const Windows& windows);
// x with its padding.
Value* padded(Value* x, const Windows& windows, double value);

Value* channels_last(Value* x);
Value* channels_first(Value* x);

}  // namespace tessera::onnx
