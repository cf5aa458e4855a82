// Every operator's examples: generated kernels compile (no GPU needed), and run as the reference does (on a
// GPU).
#include <set>

#include "device_cuda/cuda_case.h"
#include "support/operator_case.h"

namespace tessera::testing {
namespace {

class CudaOperators : public ::testing::TestWithParam<const OperatorSchema*> {};

TEST_P(CudaOperators, GeneratedKernelsCompile) {
  const OperatorSchema& schema = *GetParam();
  for (const OperatorExample& example : schema.examples) {
    for (DataType type : kAllDataTypes) {
      // One example will do for the types beside fp32.
      if (type != DataType::fp32 && &example != &schema.examples.front()) continue;
      const std::optional<Case> own = make_case(schema, example, type);
      if (own.has_value()) compile_candidates(*own->graph->nodes().back());
    }
  }
}

TEST_P(CudaOperators, EveryExampleHasAKernel) {
  const OperatorSchema& schema = *GetParam();
  const std::shared_ptr<Device> card = Device::open("cuda:plan-h100");
  for (const OperatorExample& example : schema.examples) {
    for (DataType type : kAllDataTypes) {
      const std::optional<Case> own = make_case(schema, example, type);
      if (!own.has_value()) continue;
      const auto executable = compile(*own->graph, card);
      for (const NodeReport& node : executable->nodes())
        EXPECT_NE(node.kernel, "reference.host") << own->name << ": " << node.name;
    }
  }
}

TEST_P(CudaOperators, ExamplesAsReference) {
  TESSERA_NEEDS_GPU();
  expect_examples_as_reference(gpu_or_null(), *GetParam());
}

INSTANTIATE_TEST_SUITE_P(Registry, CudaOperators, ::testing::ValuesIn(OperatorRegistry::instance().all()),
                         [](const auto& info) { return info.param->name; });

}  // namespace
}  // namespace tessera::testing
