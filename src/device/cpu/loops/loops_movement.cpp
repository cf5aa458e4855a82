// transpose, reshape, concat, split, slice and pad: strided copies.
#include <algorithm>
#include <cstring>
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

// Every element with the bytes of one: what was filled already is copied after itself.
void fill(char* out, int64_t count, const void* element, size_t bytes) {
  if (count == 0) return;
  const size_t total = static_cast<size_t>(count) * bytes;
  std::memcpy(out, element, bytes);
  for (size_t done = bytes; done < total; done *= 2)
    std::memcpy(out + done, out, std::min(done, total - done));
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
    const size_t bytes = value.bytes();
    auto* out = static_cast<char*>(arguments.outputs[0]);
    for_each_part(part_count(elements), elements, [&](int64_t, int64_t begin, int64_t end) {
      fill(out + static_cast<size_t>(begin) * bytes, end - begin, value.raw(), bytes);
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
