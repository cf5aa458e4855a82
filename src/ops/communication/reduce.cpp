#include "ops/communication/communication.h"

namespace tessera::ops {
namespace {

const OperatorRegistration kRegistration{rooted_collective(
    {.name = "reduce",
     .documentation = "The sum over all ranks, for one of them; the others get zeros. Sums as in all_reduce.",
     .types = kNumericTypes,
     .root = "the rank that gets it",
     .gradient = broadcast})};

}  // namespace
}  // namespace tessera::ops
