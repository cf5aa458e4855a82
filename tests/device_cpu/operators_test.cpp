// Every operator's examples, in every type that its schema allows, on the CPU beside the reference. Derived
// from the registry: a new operator is tested as soon as it has examples.
#include <set>

#include "device_cpu/cpu_case.h"
#include "support/operator_case.h"
#include "support/type_chain.h"

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

// What tests/mutation expects to be compared here.
TEST(KernelFamilies, OfTheCpuAreOperatorsAndFusions) {
  const std::set<std::string> families = record_families(*Device::cpu());
  EXPECT_TRUE(families.contains("convolution"));
  EXPECT_TRUE(families.contains("fused batch_norm"));
}

TEST(ElementTypes, AreCastAndMovedThroughThePasses) {
  for (const DataType type : kAllDataTypes) {
    if (is_complex(type)) continue;
    const Case own = type_chain(type);
    const std::vector<Tensor> expected = run_reference(*own.graph, own.inputs).outputs;
    const DeviceRun run = run_on_cpu(own, /*fuse=*/true);
    for (size_t i = 0; i < expected.size(); ++i)
      EXPECT_TRUE(run.outputs[i].identical(expected[i])) << to_string(type) << ", output " << i;
  }
}

// No arithmetic, but memory of their own on the way.
TEST(ElementTypes, ComplexNumbersAreMoved) {
  for (const DataType type : {DataType::complex64, DataType::complex128}) {
    Case own = text_case(fmt::format(
        "graph moves(input %x: {}[3, 5]) {{ %p = pad(%x) {{low = [1, 0], high = [0, 2], interior = [0, 1], "
        "value = "
        "3}} %t = transpose(%p) {{permutation = [1, 0]}} %y = concat(%t, %t) {{axis = 0}} output y = %y }}",
        to_string(type)));
    Tensor parts = own.inputs[0].parts();
    for (int64_t i = 0; i < parts.size(); ++i) parts.set(i, static_cast<double>(i) - 7.5);
    const std::vector<Tensor> expected = run_reference(*own.graph, own.inputs).outputs;
    EXPECT_TRUE(run_on_cpu(own, true).outputs[0].identical(expected[0])) << to_string(type);
  }
}

}  // namespace
}  // namespace tessera::testing
