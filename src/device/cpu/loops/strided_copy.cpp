#include "device/cpu/loops/strided_copy.h"

#include <algorithm>

#include "device/cpu/convolution/transpose_block.h"
#include "device/cpu/runtime/parallel.h"

namespace tessera::cpu {
namespace {

// A dense copy is cut into pieces of this many elements for the threads.
constexpr int64_t kPiece = int64_t{1} << 14;

// An element of two doubles.
struct Sixteen {
  uint64_t halves[2];
};

}  // namespace

StridedCopy::StridedCopy(const Shape& shape, StridedView from, StridedView to, int64_t element_bytes)
    : from_offset_(from.offset), to_offset_(to.offset), bytes_(element_bytes) {
  std::vector<Axis> axes;
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    elements_ *= shape[axis];
    if (shape[axis] != 1) axes.push_back({shape[axis], from.strides[axis], to.strides[axis]});
  }
  std::stable_sort(axes.begin(), axes.end(), [](const Axis& a, const Axis& b) { return a.to > b.to; });
  for (const Axis& axis : axes) {
    Axis* last = axes_.empty() ? nullptr : &axes_.back();
    if (last != nullptr && last->from == axis.from * axis.extent && last->to == axis.to * axis.extent) {
      *last = {last->extent * axis.extent, axis.from, axis.to};
    } else {
      axes_.push_back(axis);
    }
  }
  if (axes_.empty()) axes_.push_back({1, 1, 1});
  if (axes_.size() == 1 && axes_[0].extent > 2 * kPiece && axes_[0].extent % kPiece == 0) {
    const Axis whole = axes_[0];
    axes_ = {{whole.extent / kPiece, whole.from * kPiece, whole.to * kPiece}, {kPiece, whole.from, whole.to}};
  }
  outer_.assign(axes_.begin(), axes_.end() - 1);
  const Axis& inner = axes_.back();
  for (size_t axis = 0; axis < outer_.size() && inner.from != 1; ++axis) {
    if (outer_[axis].from != 1 || outer_[axis].extent < 4) continue;
    crossing_axis_ = axis;
    crossing_ = outer_[axis];
    // Its squares remain an outer axis.
    outer_[axis] = {(crossing_.extent + kTransposeSquare - 1) / kTransposeSquare,
                    crossing_.from * kTransposeSquare, crossing_.to * kTransposeSquare};
    break;
  }
}

void StridedCopy::run(const void* source, void* target) const {
  switch (bytes_) {
    case 1:
      return run_typed(static_cast<const uint8_t*>(source), static_cast<uint8_t*>(target));
    case 2:
      return run_typed(static_cast<const uint16_t*>(source), static_cast<uint16_t*>(target));
    case 4:
      return run_typed(static_cast<const uint32_t*>(source), static_cast<uint32_t*>(target));
    case 8:
      return run_typed(static_cast<const uint64_t*>(source), static_cast<uint64_t*>(target));
    default:
      return run_typed(static_cast<const Sixteen*>(source), static_cast<Sixteen*>(target));
  }
}

// One stripe: up to kTransposeSquare elements of the crossing axis, all of the inner one.
template <typename T>
void StridedCopy::copy_transposed(const T* source, T* target, int64_t extent, int64_t stride) const {
  const Axis& inner = axes_.back();
  int64_t start = 0;
  if constexpr (sizeof(T) == 4) {
    if (extent == kTransposeSquare && inner.to == 1) {
      for (; start + kTransposeSquare <= inner.extent; start += kTransposeSquare) {
        transpose_square(source + start * inner.from, inner.from, target + start, stride);
      }
    }
  }
  for (; start < inner.extent; start += kTransposeSquare) {
    const int64_t end = std::min(inner.extent, start + kTransposeSquare);
    for (int64_t j = 0; j < extent; ++j) {
      for (int64_t i = start; i < end; ++i) target[j * stride + i * inner.to] = source[j + i * inner.from];
    }
  }
}

template <typename T>
void StridedCopy::run_typed(const T* source, T* target) const {
  if (elements_ == 0) return;
  int64_t rows = 1;
  for (const Axis& axis : outer_) rows *= axis.extent;
  for_each_part(std::min(part_count(elements_), rows), rows, [&](int64_t, int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      int64_t from = from_offset_;
      int64_t to = to_offset_;
      int64_t crossed = 0;  // elements of the crossing axis before this row
      int64_t rest = row;
      for (size_t axis = outer_.size(); axis-- > 0;) {
        const int64_t index = rest % outer_[axis].extent;
        rest /= outer_[axis].extent;
        from += index * outer_[axis].from;
        to += index * outer_[axis].to;
        if (axis == crossing_axis_) crossed = index * kTransposeSquare;
      }
      const Axis& inner = axes_.back();
      if (crossing_axis_ != kNone) {
        copy_transposed(source + from, target + to, std::min(kTransposeSquare, crossing_.extent - crossed),
                        crossing_.to);
      } else if (inner.from == 1 && inner.to == 1) {
        std::copy_n(source + from, inner.extent, target + to);
      } else if (inner.from == 0 && inner.to == 1) {
        std::fill_n(target + to, inner.extent, source[from]);
      } else {
        for (int64_t i = 0; i < inner.extent; ++i) target[to + i * inner.to] = source[from + i * inner.from];
      }
    }
  });
}

}  // namespace tessera::cpu
