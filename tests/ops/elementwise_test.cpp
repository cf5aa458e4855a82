// Values computed by hand where elementwise operators could go wrong: NaN, ties, limits, integers.
#include <cmath>
#include <limits>
#include <string_view>

#include <gtest/gtest.h>

#include "tessera/ops/functions.h"
#include "tessera/passes/differentiate.h"

#include "ops/examples.h"

namespace tessera::testing {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

Tensor doubles(const std::vector<double>& values) {
  return Tensor::from<double>({std::ssize(values)}, values);
}

std::vector<double> run(const std::string& name, const std::vector<double>& x,
                        const Attributes& attributes = {}) {
  return run_operator(name, {doubles(x)}, attributes)[0].to_doubles();
}

std::vector<double> run(const std::string& name, const std::vector<double>& a, const std::vector<double>& b) {
  return run_operator(name, {doubles(a), doubles(b)})[0].to_doubles();
}

// Functions in double: the values are of a few units, or as close as the digits that stand in the test.
void expect_near(const std::vector<double>& actual, const std::vector<double>& expected, double tolerance) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i)
    EXPECT_NEAR(actual[i], expected[i], tolerance) << "element " << i;
}

// The gradients of sum(op(inputs)) to each of the inputs.
std::vector<std::vector<double>> gradients(const std::string& name,
                                           const std::vector<std::vector<double>>& inputs,
                                           const Attributes& attributes = {}) {
  Graph graph;
  std::vector<Value*> values;
  std::vector<Tensor> tensors;
  for (const std::vector<double>& input : inputs) {
    tensors.push_back(doubles(input));
    values.push_back(graph.add_input(InputRole::input, "input" + std::to_string(values.size()),
                                     {DataType::fp64, to_symbolic(tensors.back().shape())}));
  }
  Value* loss = ops::reduce_sum(ops::apply(name, values, attributes)->output());
  for (Value* gradient : differentiate(graph, loss, values)) graph.add_output(gradient->name(), gradient);
  std::vector<std::vector<double>> result;
  for (const Tensor& tensor : run_reference(graph, tensors).outputs) result.push_back(tensor.to_doubles());
  return result;
}

TEST(Elementwise, BroadcastsAsNumPy) {
  const Tensor column = Tensor::from<float>({2, 1}, {10, 20});
  const Tensor row = Tensor::from<float>({3}, {1, 2, 3});
  const Tensor sum = run_operator("add", {column, row})[0];
  EXPECT_TRUE(sum.identical(Tensor::from<float>({2, 3}, {11, 12, 13, 21, 22, 23})));
}

TEST(Elementwise, IntegersAreExactAndWrap) {
  const int64_t large = (int64_t{1} << 60) + 1;  // no double holds it
  const Tensor a = Tensor::from<int64_t>({3}, {large, std::numeric_limits<int64_t>::max(), -7});
  const Tensor b = Tensor::from<int64_t>({3}, {1, 1, 2});
  EXPECT_TRUE(run_operator("add", {a, b})[0].identical(
      Tensor::from<int64_t>({3}, {large + 1, std::numeric_limits<int64_t>::min(), -5})));
  EXPECT_TRUE(run_operator("greater", {a, run_operator("subtract", {a, b})[0]})[0].identical(
      Tensor::from<bool>({3}, {true, true, true})));
  const Tensor bytes = run_operator(
      "add", {Tensor::from<uint8_t>({1}, {uint8_t{250}}), Tensor::from<uint8_t>({1}, {uint8_t{10}})})[0];
  EXPECT_EQ(bytes.at(0), 4);
  const auto made = [](const char* name, DataType type, double a, double b) {
    return run_operator(name, {Tensor::from_doubles(type, {1}, std::vector{a}),
                               Tensor::from_doubles(type, {1}, std::vector{b})})[0]
        .at(0);
  };
  EXPECT_EQ(made("add", DataType::int16, 32767, 2), -32767);
  EXPECT_EQ(made("subtract", DataType::uint16, 1, 3), 65534);
  EXPECT_EQ(made("multiply", DataType::uint16, 65535, 65535), 1);
  EXPECT_EQ(made("multiply", DataType::uint32, 4294967295.0, 4294967295.0), 1);
  EXPECT_EQ(made("divide", DataType::int16, -32768, -1), -32768);
  EXPECT_EQ(made("divide", DataType::uint32, 4294967295.0, 2), 2147483647);
  EXPECT_EQ(made("maximum", DataType::uint32, 4294967295.0, 2), 4294967295.0);
  EXPECT_EQ(made("less", DataType::uint32, 4294967295.0, 2), 0);
}

TEST(Elementwise, IntegerDivisionIsDefinedForEveryInput) {
  const Tensor a = Tensor::from<int64_t>({4}, {-7, 7, 5, std::numeric_limits<int64_t>::min()});
  const Tensor b = Tensor::from<int64_t>({4}, {2, -2, 0, -1});
  EXPECT_TRUE(run_operator("divide", {a, b})[0].identical(
      Tensor::from<int64_t>({4}, {-3, -3, 0, std::numeric_limits<int64_t>::min()})));
}

TEST(Elementwise, ExtremesCarryNan) {
  for (const char* name : {"maximum", "minimum"}) {
    for (const double value : run(name, {kNan, 1, kNan}, {1, kNan, kNan})) EXPECT_TRUE(std::isnan(value));
  }
  EXPECT_TRUE(std::isnan(run("relu", {kNan})[0]));
  EXPECT_TRUE(std::isnan(run("clip", {kNan}, {{"low", 0.0}, {"high", 1.0}})[0]));
}

TEST(Elementwise, ExtremesShareTheGradientOfTies) {
  for (const char* name : {"maximum", "minimum"}) {
    const auto shared = gradients(name, {{2}, {2}});
    EXPECT_EQ(shared[0][0], 0.5);
    EXPECT_EQ(shared[1][0], 0.5);
  }
  const auto larger = gradients("maximum", {{1, 3}, {2, 2}});
  EXPECT_EQ(larger[0], (std::vector<double>{0, 1}));
  EXPECT_EQ(larger[1], (std::vector<double>{1, 0}));
}

TEST(Elementwise, KinksHaveTheGradientOfTheFlatSide) {
  EXPECT_EQ(gradients("relu", {{-1, 0, 1}})[0], (std::vector<double>{0, 0, 1}));
  EXPECT_EQ(gradients("relu6", {{0, 3, 6, 7}})[0], (std::vector<double>{0, 1, 0, 0}));
  EXPECT_EQ(gradients("absolute", {{-2, 0, 2}})[0], (std::vector<double>{-1, 0, 1}));
}

TEST(Elementwise, ComparisonsWithNanAreFalse) {
  for (const char* name : {"equal", "less", "less_equal", "greater", "greater_equal"}) {
    EXPECT_EQ(run(name, {kNan, 1}, {kNan, kNan}), (std::vector<double>{0, 0})) << name;
  }
  EXPECT_EQ(run("not_equal", {kNan, 1}, {kNan, 1}), (std::vector<double>{1, 0}));
}

TEST(Elementwise, SelectIgnoresWhatItDoesNotChoose) {
  const Tensor condition = Tensor::from<bool>({2}, {true, false});
  const Tensor chosen = run_operator("select", {condition, doubles({1, kNan}), doubles({kNan, 2})})[0];
  EXPECT_EQ(chosen.to_doubles(), (std::vector<double>{1, 2}));
  const int64_t large = (int64_t{1} << 60) + 1;
  const Tensor integers = run_operator(
      "select", {condition, Tensor::from<int64_t>({}, {large}), Tensor::from<int64_t>({}, {int64_t{-1}})})[0];
  EXPECT_TRUE(integers.identical(Tensor::from<int64_t>({2}, {large, -1})));
}

TEST(Elementwise, CastTruncatesAndSaturates) {
  EXPECT_EQ(run("cast", {-1.9, 1.9, 1e10, -1e10, kNan}, {{"type", DataType::int32}}),
            (std::vector<double>{-1, 1, 2147483647, -2147483648.0, 0}));
  EXPECT_EQ(run("cast", {-0.5, 0, kNan}, {{"type", DataType::boolean}}), (std::vector<double>{1, 0, 1}));
  EXPECT_EQ(run("cast", {1 + 0x1p-12}, {{"type", DataType::fp16}}), (std::vector<double>{1}));
}

TEST(Elementwise, RoundGoesToTheEvenNeighbor) {
  EXPECT_EQ(run("round", {0.5, 1.5, 2.5, -0.5, -1.5, 0.49}), (std::vector<double>{0, 2, 2, 0, -2, 0}));
}

TEST(Elementwise, StableFormsStayFinite) {
  expect_near(run("softplus", {-1000, 0, 1000}), {0, std::log(2), 1000}, 1e-12);
  expect_near(run("sigmoid", {-1000, 0, 1000}), {0, 0.5, 1}, 1e-12);
  expect_near(run("elu", {-1000, 0, 1000}), {-1, 0, 1000}, 1e-12);
  expect_near(run("mish", {-1000, 0, 1000}), {0, 0, 1000}, 1e-12);
  expect_near(run("binary_cross_entropy", {-1000, 1000, 1000}, {1, 1, 0}), {1000, 0, 1000}, 1e-12);
  EXPECT_EQ(gradients("elu", {{-1000, 1000}})[0], (std::vector<double>{0, 1}));
}

// PyTorch 2: torch.nn.functional.gelu and so on at 0.5 and -1.5.
TEST(Elementwise, ActivationsHavePyTorchsValues) {
  const std::vector<double> x{0.5, -1.5};
  expect_near(run("gelu", x), {0.345731230637, -0.100210801697}, 1e-9);
  expect_near(run("gelu", x, {{"approximate", true}}), {0.345714009825, -0.100428423020}, 1e-9);
  expect_near(run("silu", x), {0.311229665601, -0.273638285740}, 1e-9);
  expect_near(run("hard_sigmoid", x), {3.5 / 6, 0.25}, 1e-12);
  expect_near(run("hard_swish", x), {0.5 * 3.5 / 6, -0.375}, 1e-12);
  expect_near(run("leaky_relu", x), {0.5, -0.015}, 1e-12);
}

TEST(Elementwise, PowerAtTheBorders) {
  EXPECT_EQ(run("power", {0, 0, -2, 2}, {0, 3, 3, -1}), (std::vector<double>{1, 0, -8, 0.5}));
  EXPECT_TRUE(std::isnan(run("power", {-2}, {0.5})[0]));
  const auto gradient = gradients("power", {{0, 0, -2}, {0, 2, 3}});
  EXPECT_EQ(gradient[0], (std::vector<double>{0, 0, 12}));
  EXPECT_EQ(gradient[1], (std::vector<double>{0, 0, 0}));
}

TEST(Elementwise, IsFinite) {
  EXPECT_EQ(run("is_finite", {0, kInfinity, -kInfinity, kNan, 1e300}), (std::vector<double>{1, 0, 0, 0, 1}));
}

// A GELU has 1 - tanh(3.9) in it, which bf16 cannot hold: PyTorch too computes in fp32 and rounds once.
TEST(Elementwise, CompositeOperatorsOfNarrowTypesRoundOnce) {
  const std::vector<double> x{-3.3125, -2.5, -0.375, 1.75};
  for (const DataType type : {DataType::bf16, DataType::fp16}) {
    for (const char* name : {"gelu", "silu", "softplus"}) {
      const bool approximate = std::string_view(name) == "gelu";
      const Attributes attributes = approximate ? Attributes{{"approximate", true}} : Attributes{};
      const Tensor wide = doubles(x).cast(DataType::fp32);
      const Tensor narrow = run_operator(name, {wide.cast(type)}, attributes)[0];
      EXPECT_TRUE(narrow.identical(run_operator(name, {wide}, attributes)[0].cast(type))) << name;
      EXPECT_NE(narrow.at(0), 0) << name;
    }
  }
}

}  // namespace
}  // namespace tessera::testing
