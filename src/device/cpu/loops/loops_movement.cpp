// transpose, reshape, concat, split, slice and pad: strided copies.
#include <algorithm>
#include <memory>
#include <vector>

#include "tessera/graph/operator.h"

#include "device/cpu/loops/loop_kernel.h"
#include "device/cpu/loops/strided_copy.h"
#include "device/cpu/runtime/parallel.h"

namespace tessera::cpu {
namespace {

int64_t element_bytes(const Node& node) {
  return static_cast<int64_t>(size_of(node.input(0)->data_type()));
}

// Runs the copies that a node is made of.
LoopFunction copies(const Node& node) {
  struct Copy {
    StridedCopy copy;
    size_t input;
    size_t output;
  };
  std::vector<Copy> list;
  for (const backend::StridedMove& move : backend::strided_moves(node)) {
    list.push_back(
        {StridedCopy(move.shape, move.from, move.to, element_bytes(node)), move.input, move.output});
  }
  return [list](const KernelArguments& arguments) {
    for (const Copy& part : list) part.copy.run(arguments.inputs[part.input], arguments.outputs[part.output]);
  };
}

LoopKernel move(const Node& node) {
  return {.run = copies(node)};
}

LoopKernel reshape(const Node& node) {
  const StridedCopy copy({node.output()->type().element_count()}, {0, {1}}, {0, {1}}, element_bytes(node));
  return {.run = [copy](const KernelArguments& arguments) {
    copy.run(arguments.inputs[0], arguments.outputs[0]);
  }};
}

LoopKernel pad(const Node& node) {
  const int64_t elements = node.output()->type().element_count();
  const Tensor value = Tensor::scalar(node.input(0)->data_type(), node.attributes().real("value"));
  return {.run = [copy = copies(node), elements, value](const KernelArguments& arguments) {
    dispatch(value.data_type(), [&]<typename T>() {
      T* out = static_cast<T*>(arguments.outputs[0]);
      const T padding = value.data<T>()[0];
      for_each_part(part_count(elements), elements,
                    [&](int64_t, int64_t begin, int64_t end) { std::fill(out + begin, out + end, padding); });
    });
    copy(arguments);
  }};
}

const LoopRegistration kTranspose("transpose", move);
const LoopRegistration kReshape("reshape", reshape);
const LoopRegistration kConcat("concat", move);
const LoopRegistration kSplit("split", move);
const LoopRegistration kSlice("slice", move);
const LoopRegistration kPad("pad", pad);

}  // namespace
}  // namespace tessera::cpu
