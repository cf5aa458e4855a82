// random_normal: a block of four words makes two pairs of numbers, the same bits as the reference.
#include <algorithm>
#include <array>
#include <type_traits>

#include "tessera/base/random.h"
#include "tessera/graph/operator.h"

#include "device/cpu/loops/loop_kernel.h"
#include "device/cpu/runtime/parallel.h"

namespace tessera::cpu {
namespace {

LoopKernel random_normal(const Node& node) {
  const int64_t elements = node.output()->type().element_count();
  const DataType type = node.output()->data_type();
  const int64_t stream = node.attributes().integer("stream");
  return {.run = [=](const KernelArguments& arguments) {
    const auto* counter = static_cast<const int64_t*>(arguments.inputs[0]);
    const Random random(static_cast<uint64_t>(counter[0]), step_stream(stream, counter[1]));
    dispatch(type, [&]<typename T>() {
      T* out = static_cast<T*>(arguments.outputs[0]);
      const int64_t blocks = (elements + 3) / 4;
      for_each_part(part_count(16 * elements), blocks, [&](int64_t, int64_t begin, int64_t end) {
        for (int64_t block = begin; block < end; ++block) {
          const auto words = random.block(static_cast<uint64_t>(block));
          const std::array<std::array<double, 2>, 2> pairs = {normals_of(words[0], words[1]),
                                                              normals_of(words[2], words[3])};
          const int64_t count = std::min<int64_t>(4, elements - 4 * block);
          for (int64_t i = 0; i < count; ++i) {
            const double number = pairs[static_cast<size_t>(i / 2)][static_cast<size_t>(i % 2)];
            if constexpr (std::is_same_v<T, double>) {
              out[4 * block + i] = number;
            } else {
              out[4 * block + i] = static_cast<T>(static_cast<float>(number));
            }
          }
        }
      });
    });
  }};
}

const LoopRegistration kRandomNormal("random_normal", random_normal);

}  // namespace
}  // namespace tessera::cpu
