// transpose, reshape, concat, split, slice and pad: strided copies.
#include <algorithm>
#include <memory>
#include <vector>

#include "tessera/graph/operator.h"

#include "device/cpu/loop_kernel.h"
#include "device/cpu/parallel.h"
#include "device/cpu/strided_copy.h"

namespace tessera::cpu {
namespace {

int64_t element_bytes(const Value* value) {
  return static_cast<int64_t>(size_of(value->data_type()));
}

LoopKernel one_copy(const Node& node, const Shape& shape, StridedView from, StridedView to) {
  const StridedCopy copy(shape, std::move(from), std::move(to), element_bytes(node.input(0)));
  return {.run = [copy](const KernelArguments& arguments) {
    copy.run(arguments.inputs[0], arguments.outputs[0]);
  }};
}

LoopKernel transpose(const Node& node) {
  const Shape shape = node.output()->type().static_shape();
  const std::vector<int64_t> source = row_major_strides(node.input(0)->type().static_shape());
  StridedView from;
  for (int64_t axis : node.attributes().integers("permutation")) {
    from.strides.push_back(source[static_cast<size_t>(axis)]);
  }
  return one_copy(node, shape, std::move(from), {0, row_major_strides(shape)});
}

LoopKernel reshape(const Node& node) {
  return one_copy(node, {node.output()->type().element_count()}, {0, {1}}, {0, {1}});
}

// Parts along an axis, each one copy; `whole` is the tensor that they make up.
std::vector<StridedCopy> part_copies(const Value* whole, const std::vector<const Value*>& parts, int64_t axis,
                                     bool from_whole) {
  const std::vector<int64_t> strides = row_major_strides(whole->type().static_shape());
  const auto place = static_cast<size_t>(axis < 0 ? axis + whole->type().rank() : axis);
  std::vector<StridedCopy> copies;
  int64_t offset = 0;
  for (const Value* part : parts) {
    const Shape shape = part->type().static_shape();
    StridedView inside{offset * strides[place], strides};
    StridedView own{0, row_major_strides(shape)};
    if (!from_whole) std::swap(inside, own);
    copies.emplace_back(shape, std::move(inside), std::move(own), element_bytes(whole));
    offset += shape[place];
  }
  return copies;
}

LoopKernel concat(const Node& node) {
  const std::vector<const Value*> parts(node.inputs().begin(), node.inputs().end());
  const auto copies = part_copies(node.output(), parts, node.attributes().integer("axis"), false);
  return {.run = [copies](const KernelArguments& arguments) {
    for (size_t i = 0; i < copies.size(); ++i) copies[i].run(arguments.inputs[i], arguments.outputs[0]);
  }};
}

LoopKernel split(const Node& node) {
  std::vector<const Value*> parts;
  for (const auto& output : node.outputs()) parts.push_back(output.get());
  const auto copies = part_copies(node.input(0), parts, node.attributes().integer("axis"), true);
  return {.run = [copies](const KernelArguments& arguments) {
    for (size_t i = 0; i < copies.size(); ++i) copies[i].run(arguments.inputs[0], arguments.outputs[i]);
  }};
}

LoopKernel slice(const Node& node) {
  const Shape source = node.input(0)->type().static_shape();
  const Shape shape = node.output()->type().static_shape();
  StridedView from{0, row_major_strides(source)};
  for (size_t axis = 0; axis < source.size(); ++axis) {
    const int64_t start = node.attributes().integers("starts")[axis];
    const int64_t first = std::clamp<int64_t>(start < 0 ? source[axis] + start : start, 0, source[axis]);
    from.offset += first * from.strides[axis];
    from.strides[axis] *= node.attributes().integers("strides")[axis];
  }
  return one_copy(node, shape, std::move(from), {0, row_major_strides(shape)});
}

// Rounds up; 0 for values that are not positive.
int64_t ceil_quotient(int64_t value, int64_t divisor) {
  return value <= 0 ? 0 : (value + divisor - 1) / divisor;
}

LoopKernel pad(const Node& node) {
  const Shape source = node.input(0)->type().static_shape();
  const Shape target = node.output()->type().static_shape();
  StridedView from{0, row_major_strides(source)};
  StridedView to{0, row_major_strides(target)};
  Shape kept;
  for (size_t axis = 0; axis < source.size(); ++axis) {
    const int64_t low = node.attributes().integers("low")[axis];
    const int64_t step = node.attributes().integers("interior")[axis] + 1;
    // Element i lands at low + i * step; those outside the result are cropped.
    const int64_t first = ceil_quotient(-low, step);
    const int64_t last = std::min(source[axis], ceil_quotient(target[axis] - low, step));
    kept.push_back(std::max<int64_t>(last - first, 0));
    from.offset += first * from.strides[axis];
    to.offset += (low + first * step) * to.strides[axis];
    to.strides[axis] *= step;
  }
  const StridedCopy copy(kept, std::move(from), std::move(to), element_bytes(node.input(0)));
  const int64_t elements = element_count(target);
  const Tensor value = Tensor::scalar(node.input(0)->data_type(), node.attributes().real("value"));
  return {.run = [copy, elements, value](const KernelArguments& arguments) {
    dispatch(value.data_type(), [&]<typename T>() {
      T* out = static_cast<T*>(arguments.outputs[0]);
      const T padding = value.data<T>()[0];
      for_each_part(part_count(elements), elements,
                    [&](int64_t, int64_t begin, int64_t end) { std::fill(out + begin, out + end, padding); });
    });
    copy.run(arguments.inputs[0], arguments.outputs[0]);
  }};
}

const LoopRegistration kTranspose("transpose", transpose);
const LoopRegistration kReshape("reshape", reshape);
const LoopRegistration kConcat("concat", concat);
const LoopRegistration kSplit("split", split);
const LoopRegistration kSlice("slice", slice);
const LoopRegistration kPad("pad", pad);

}  // namespace
}  // namespace tessera::cpu
