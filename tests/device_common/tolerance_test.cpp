// That the bounds of comparisons mean what they say: terms are counted, and truncation is told from rounding.
#include <algorithm>
#include <cmath>

#include "tessera/graph/operator.h"

#include "support/operator_case.h"
#include "support/operator_tolerance.h"
#include "support/rounding.h"

namespace tessera::testing {
namespace {

Tensor normal_numbers(int64_t count) {
  Tensor result(DataType::fp32, {count});
  const Random random(7);
  for (int64_t i = 0; i < count; ++i) result.set(i, random.normal(static_cast<uint64_t>(i)));
  return result;
}

class Rounding : public ::testing::TestWithParam<DataType> {};

TEST_P(Rounding, ToNearestIsTold) {
  const Tensor exact = normal_numbers(1000);
  EXPECT_TRUE(is_rounded_to_nearest(exact.cast(GetParam()), exact));
  const Tensor cut = truncated(exact, GetParam());
  EXPECT_FALSE(is_rounded_to_nearest(cut, exact));
  Tensor floored = cut.clone();
  for (int64_t i = 0; i < floored.size(); ++i) {
    const double unit = std::ldexp(2 * unit_roundoff(GetParam()), std::ilogb(exact.at(i)));
    if (cut.at(i) > exact.at(i)) floored.set(i, cut.at(i) - unit);
  }
  EXPECT_FALSE(is_rounded_to_nearest(floored, exact));
}

// The single elements of it are as close as those that were rounded to either side.
TEST_P(Rounding, TruncationIsWithinTheBoundOfElements) {
  const Tensor exact = normal_numbers(1000);
  EXPECT_TRUE(is_close(truncated(exact, GetParam()), exact.cast(GetParam()),
                       tolerance_for(OperatorClass::elementwise, GetParam())));
}

TEST_P(Rounding, OfFewElementsAndOfNumbersOfTheTypeSaysNothing) {
  const Tensor few = normal_numbers(kFewestRounded - 1);
  EXPECT_TRUE(is_rounded_to_nearest(truncated(few, GetParam()), few));
  const Tensor own = normal_numbers(1000).cast(GetParam());
  EXPECT_EQ(rounding_errors(own, own.cast(DataType::fp32)).elements, 0);
}

// Errors of what was computed before are of either sign.
TEST_P(Rounding, BesideOtherErrorsIsStillToNearest) {
  const Tensor exact = normal_numbers(1000);
  Tensor computed = exact.clone();
  const Random random(8);
  for (int64_t i = 0; i < computed.size(); ++i) {
    const double error = unit_roundoff(GetParam()) * random.normal(static_cast<uint64_t>(i));
    computed.set(i, computed.at(i) * (1 + error));
  }
  EXPECT_TRUE(is_rounded_to_nearest(computed.cast(GetParam()), exact));
}

INSTANTIATE_TEST_SUITE_P(Types, Rounding, ::testing::Values(DataType::fp16, DataType::bf16),
                         [](const auto& test) { return std::string(to_string(test.param)); });

// Of ones, each result is the number of its terms.
TEST(SummedTerms, AreAsManyAsAResultHas) {
  for (const char* name : {"matmul", "convolution", "convolution_data_gradient", "transposed_convolution",
                           "convolution_weight_gradient", "reduce_sum", "scatter_add"}) {
    const OperatorSchema& schema = OperatorRegistry::instance().get(name);
    double fullest = 0;
    for (const OperatorExample& example : schema.examples) {
      std::optional<Case> own = make_case(schema, example, DataType::fp32);
      if (!own.has_value()) continue;
      const bool floating = std::any_of(own->inputs.begin(), own->inputs.end(),
                                        [](const Tensor& input) { return is_floating(input.data_type()); });
      if (!floating) continue;
      for (Tensor& input : own->inputs) {
        if (is_floating(input.data_type())) input = Tensor::full(input.data_type(), input.shape(), 1);
      }
      const auto terms = static_cast<double>(summed_terms(*own->graph->nodes().back()));
      for (double sum : run_reference(*own->graph, own->inputs).outputs[0].to_doubles()) {
        EXPECT_LE(sum, terms) << print(*own->graph);
        fullest = std::max(fullest, sum / terms);
      }
    }
    EXPECT_GT(fullest, 0.5) << name;  // no more are counted than there are
  }
}

}  // namespace
}  // namespace tessera::testing
