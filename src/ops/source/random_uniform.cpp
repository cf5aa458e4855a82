#include "ops/source/random.h"

namespace tessera::ops {
namespace {

// As many bits as the type holds, so that rounding cannot make a 1.
int random_bits(DataType type) {
  return type == DataType::fp16 ? 11 : type == DataType::bf16 ? 8 : 24;
}

const OperatorRegistration kRegistration{random_operator({
    .name = "random_uniform",
    .documentation =
        "Numbers uniform in [0, 1): element i is word i of Philox 4x32-10 under the key `seed` and the "
        "counter (i/4, stream, step), cut to its upper 24 bits (11 for fp16, 8 for bf16), where the input "
        "`counter` is {seed, step}.",
    .number = [](const Random& random, uint64_t index, DataType type) -> double {
      return uniform_of(random.word(index), random_bits(type));
    },
    .joins_clusters = true,
})};

}  // namespace
}  // namespace tessera::ops
