#include <cmath>
#include <limits>

#include "ops/reduction/extremum_gradient.h"
#include "ops/reduction/reduction.h"

namespace tessera::ops {
namespace {

const OperatorRegistration kRegistration(reduction({
    .name = "reduce_min",
    .kind = ReductionKind::minimum,
    .documentation = "Smallest element over `axes`; NaN if one of them is NaN, infinity (of an integer type "
                     "the largest number) if there is none. The gradient is shared evenly among equal "
                     "smallest elements.",
    .start = std::numeric_limits<double>::infinity(),
    .combine = [](double best,
                  double element) { return std::isnan(best) || best < element ? best : element; },
    .gradient = extremum_gradient,
}));

}  // namespace
}  // namespace tessera::ops
