#include "ops/reduction/reduction.h"

namespace tessera::ops {
namespace {

const OperatorRegistration kRegistration(reduction({
    .name = "reduce_sum",
    .kind = ReductionKind::sum,
    .documentation = "Sum over `axes`. 16-bit types are summed in at least fp32 and rounded once; 64-bit "
                     "integers are exact within 2^53.",
    .start = 0,
    .combine = [](double sum, double element) { return sum + element; },
    .gradient = [](Value* x, Value*, Value* dy,
                   const std::vector<int64_t>&) { return broadcast_to(dy, x->shape()); },
}));

}  // namespace
}  // namespace tessera::ops
