// Every primitive of the cluster engine against its definition in double, over the whole range of fp32.
#include <bit>

#include "device_cpu/cpu_case.h"

namespace tessera::testing {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Special values, and then every 99991st float.
std::vector<float> sweep() {
  std::vector<float> values = {0.0f,       -0.0f,          1.0f,          -1.0f,          0.5f,
                               -0.5f,      1.5f,           2.5f,          -2.5f,          88.7f,
                               88.73f,     89.0f,          104.0f,        -87.4f,         -103.9f,
                               -104.1f,    kInfinity,      -kInfinity,    std::nanf(""),  1e-45f,
                               -1e-45f,    1.1754944e-38f, 3.4028235e38f, -3.4028235e38f, 0.9277343f,
                               0.9277344f, 3.9f,           9.0f,          16777216.0f,    8388607.5f};
  for (uint64_t bits = 0; bits <= 0xffffffffu; bits += 99991) {
    values.push_back(std::bit_cast<float>(static_cast<uint32_t>(bits)));
  }
  return values;
}

// In units in the last place of the expected float; subnormal numbers count the least spacing.
double error_in_ulp(float actual, double expected) {
  const auto rounded = static_cast<float>(expected);
  if (std::isnan(expected)) return std::isnan(actual) ? 0 : kInfinity;
  if (std::isinf(rounded) || std::isinf(actual)) {
    // Next to the overflow either side is right.
    const bool close = std::abs(expected) > 3.4028e38 && std::signbit(actual) == std::signbit(rounded) &&
                       std::abs(actual) > 3.4028e38f;
    return actual == rounded || close ? 0 : kInfinity;
  }
  const float magnitude = std::max(std::abs(rounded), 1.1754944e-38f);
  const double spacing =
      static_cast<double>(std::nextafter(magnitude, kInfinity)) - static_cast<double>(magnitude);
  return std::abs(static_cast<double>(actual) - expected) / spacing;
}

Case one_operator(const std::string& name, const std::vector<std::vector<float>>& arguments) {
  Case result;
  result.name = name;
  result.graph = std::make_unique<Graph>(name);
  std::vector<Value*> inputs;
  const auto size = static_cast<int64_t>(arguments[0].size());
  for (const auto& values : arguments) {
    inputs.push_back(result.graph->add_input(InputRole::input, fmt::format("x{}", inputs.size()),
                                             {DataType::fp32, {Dimension(size)}}));
    result.inputs.push_back(Tensor::from<float>({size}, values));
  }
  result.graph->add_output("y", result.graph->add_node(name, inputs)->output());
  return result;
}

void expect_within(const std::string& name, const std::vector<std::vector<float>>& arguments, double limit) {
  const OperatorSchema& schema = OperatorRegistry::instance().get(name);
  const CpuRun run = run_on_cpu(one_operator(name, arguments));
  ASSERT_EQ(run.kernels, std::vector<std::string>{"loops.cluster"});
  double worst = 0;
  std::string where;
  for (size_t i = 0; i < arguments[0].size(); ++i) {
    std::vector<double> x;
    for (const auto& values : arguments) x.push_back(values[i]);
    const auto actual = static_cast<float>(run.outputs[0].at(static_cast<int64_t>(i)));
    const double expected = schema.scalar(x, {});
    const double error = error_in_ulp(actual, expected);
    if (error <= worst) continue;
    worst = error;
    where = fmt::format("{}({:.9g}) = {:.9g}, expected {:.9g}", name, fmt::join(x, ", "), actual, expected);
  }
  EXPECT_LE(worst, limit) << where;
}

std::vector<std::string> primitives(size_t inputs) {
  std::vector<std::string> names;
  for (const OperatorSchema* schema : OperatorRegistry::instance().all()) {
    const bool floating = std::all_of(schema->inputs.begin(), schema->inputs.end(),
                                      [](const auto& input) { return input.types.contains(DataType::fp32); });
    if (schema->scalar && floating && schema->inputs.size() == inputs && schema->name != "cast") {
      names.push_back(schema->name);
    }
  }
  return names;
}

class UnaryPrimitives : public ::testing::TestWithParam<std::string> {};
class BinaryPrimitives : public ::testing::TestWithParam<std::string> {};

TEST_P(UnaryPrimitives, WholeRange) {
  expect_within(GetParam(), {sweep()}, 4);
}

TEST_P(BinaryPrimitives, SpecialValues) {
  const std::vector<float> values = {0.0f,  -0.0f,  1.0f,  -1.0f,  2.0f,      -2.0f,      0.5f,         3.7f,
                                     -3.7f, 1e-45f, 1e38f, -1e38f, kInfinity, -kInfinity, std::nanf("")};
  std::vector<std::vector<float>> arguments(2);
  for (float a : values) {
    for (float b : values) {
      arguments[0].push_back(a);
      arguments[1].push_back(b);
    }
  }
  expect_within(GetParam(), arguments, 1);
}

const auto kName = [](const ::testing::TestParamInfo<std::string>& info) { return info.param; };
INSTANTIATE_TEST_SUITE_P(Registry, UnaryPrimitives, ::testing::ValuesIn(primitives(1)), kName);
INSTANTIATE_TEST_SUITE_P(Registry, BinaryPrimitives, ::testing::ValuesIn(primitives(2)), kName);

}  // namespace
}  // namespace tessera::testing
