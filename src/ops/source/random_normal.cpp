#include "ops/source/random.h"

namespace tessera::ops {
namespace {

const OperatorRegistration kRegistration{random_operator({
    .name = "random_normal",
    .documentation =
        "Numbers of the standard normal distribution: elements 2j and 2j+1 by Box-Muller from words 2j and "
        "2j+1 of the stream that random_uniform describes, r cos(a) and r sin(a) with "
        "r = sqrt(-2 ln((word(2j) + 1) / 2^32)) and a = 2 pi word(2j+1) / 2^32.",
    .number = [](const Random& random, uint64_t index, DataType) { return random.normal(index); },
})};

}  // namespace
}  // namespace tessera::ops
