// Every operator's examples, in every type that its schema allows, on the CPU beside the reference. Derived
// from the registry: a new operator is tested as soon as it has examples.
#include <set>

#include "device_cpu/cpu_case.h"
#include "support/operator_case.h"

namespace tessera::testing {
namespace {

class Operators : public ::testing::TestWithParam<const OperatorSchema*> {};

TEST_P(Operators, ExamplesAsReference) {
  expect_examples_as_reference(Device::cpu(), *GetParam());
}

// The first example runs on a kernel of the CPU's own, in fp32.
TEST_P(Operators, HaveAKernel) {
  const OperatorSchema& schema = *GetParam();
  if (schema.examples.empty()) GTEST_SKIP() << "no examples";
  // Sources run once, at compile time.
  static const std::set<std::string> kOnReference = {"constant", "count_elements", "iota"};
  if (kOnReference.contains(schema.name)) GTEST_SKIP() << "on the reference";
  const std::optional<Case> own = make_case(schema, schema.examples.front(), DataType::fp32);
  ASSERT_TRUE(own.has_value());
  for (const std::string& kernel : run_on_cpu(*own).kernels) EXPECT_NE(kernel, "reference");
}

INSTANTIATE_TEST_SUITE_P(Registry, Operators, ::testing::ValuesIn(OperatorRegistry::instance().all()),
                         [](const auto& info) { return info.param->name; });

}  // namespace
}  // namespace tessera::testing
