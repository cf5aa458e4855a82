// Every operator's examples: generated kernels compile (no GPU needed), and run as the reference does (on a
// GPU).
#include <algorithm>
#include <set>

#include "device_cuda/cuda_case.h"
#include "support/operator_case.h"
#include "support/type_chain.h"

namespace tessera::testing {
namespace {

// What the host computes: see docs/graph_text.md.
bool moves_parts_of_bytes(const Graph& graph) {
  const auto is_part = [](const auto& value) { return is_packed(value->data_type()); };
  const Node& node = *graph.nodes().back();
  return std::any_of(node.inputs().begin(), node.inputs().end(), is_part) ||
         std::any_of(node.outputs().begin(), node.outputs().end(), is_part);
}

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
      if (!own.has_value() || moves_parts_of_bytes(*own->graph)) continue;
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

// What tests/mutation expects to be compared here.
TEST(CudaKernelFamilies, OfEveryCardAreOperatorsAndFusions) {
  const std::set<std::string> families = record_families(*Device::open("cuda:plan-h100"));
  EXPECT_TRUE(families.contains("convolution"));
  EXPECT_TRUE(families.contains("fused batch_norm"));
}

TEST(CudaElementTypes, HaveKernelsUnlessTheyAreParts) {
  const std::shared_ptr<Device> card = Device::open("cuda:plan-h100");
  for (const DataType type : kAllDataTypes) {
    if (is_complex(type)) continue;
    const auto executable = compile(*type_chain(type).graph, card);
    bool on_host = false;
    for (const NodeReport& node : executable->nodes()) on_host |= node.kernel == "reference.host";
    EXPECT_EQ(on_host, is_packed(type)) << to_string(type);
  }
}

}  // namespace
}  // namespace tessera::testing
