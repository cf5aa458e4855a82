// Rotary positions: the kernel over heads of many widths, and where it stands in a plan.
#include "tessera/tasks/language_model.h"
#include "tessera/train/step.h"

#include "device_cuda/cuda_case.h"
#include "device_cuda/plan_case.h"
#include "support/every_kernel.h"
#include "support/operator_tolerance.h"

namespace tessera::testing {
namespace {

constexpr int64_t kLayers = 2;

struct RotaryCase {
  std::string name;
  Shape x;
  Shape angles;
  std::string attributes = "axis = -3";
};

// Accesses of 16 bytes, of fewer and of single numbers; heads beside each other and apart; angles for all and
// for each; more than a pass of the grid.
std::vector<RotaryCase> rotary_cases() {
  return {{"Whole", {2, 37, 3, 64}, {37, 32}},
          {"Back", {2, 37, 3, 64}, {37, 32}, "inverse = true"},
          {"Interleaved", {2, 37, 3, 64}, {37, 32}, "interleaved = true"},
          {"InterleavedBack", {3, 5, 2, 24}, {5, 12}, "interleaved = true, inverse = true"},
          {"HeadsApart", {2, 3, 37, 80}, {37, 40}, "axis = 2"},
          {"AnglesForEach", {3, 9, 2, 32}, {3, 9, 16}, "axis = 1"},
          {"HalvesOfAnAccess", {1, 11, 5, 8}, {11, 4}},
          {"OddPairs", {2, 13, 3, 66}, {13, 33}},
          {"OddPairsInterleaved", {2, 13, 3, 66}, {13, 33}, "interleaved = true"},
          {"OnePair", {7, 5, 1, 2}, {5, 1}},
          {"NoHeads", {29, 10}, {29, 5}, "axis = 0"},
          {"Many", {4, 1024, 16, 128}, {1024, 64}}};
}

class CudaRotaryEmbedding : public ::testing::TestWithParam<RotaryCase> {
 protected:
  static std::unique_ptr<Graph> make(const std::string& type) {
    const RotaryCase& own = GetParam();
    return parse_graph(
        fmt::format("graph g(input %x: {0}[{2}], input %c: {1}[{3}], input %s: {1}[{3}]) {{\n"
                    "  %y = rotary_embedding(%x, %c, %s) {{{4}}}\n  output y = %y\n}}",
                    type, type == "fp64" ? "fp64" : "fp32", fmt::join(own.x, ", "),
                    fmt::join(own.angles, ", "), own.attributes));
  }
};

TEST_P(CudaRotaryEmbedding, CudaTextCompiles) {
  for (const std::string type : {"fp32", "fp64", "fp16", "bf16"})
    EXPECT_EQ(compile_candidates(*make(type)->nodes().front()), 1U) << type;
}

TEST_P(CudaRotaryEmbedding, CudaEveryKernel) {
  TESSERA_NEEDS_GPU();
  for (const std::string type : {"fp32", "fp64", "fp16", "bf16"}) {
    SCOPED_TRACE(type);
    const std::unique_ptr<Graph> graph = make(type);
    const Node& node = *graph->nodes().front();
    const std::vector<Tensor> inputs = random_inputs(node, -2, 2);
    expect_every_kernel(node, inputs, tolerances_of(node, inputs), {false, false, false}, gpu_or_null());
  }
}

INSTANTIATE_TEST_SUITE_P(DeviceCuda, CudaRotaryEmbedding, ::testing::ValuesIn(rotary_cases()),
                         [](const auto& test) { return test.param.name; });

std::unique_ptr<Executable> planned_decoder(models::DecoderForm form) {
  const nn::Task task = tasks::language_model({.network = {.form = form,
                                                           .vocabulary = 1000,
                                                           .width = 128,
                                                           .layers = kLayers,
                                                           .heads = 2,
                                                           .inner = 256,
                                                           .positions = 128},
                                               .tokens = 128});
  const train::StepGraph step =
      train::build_training_step(task, {.sizes = {{"batch", 4}},
                                        .phase = {.groups = {{.optimizer = optim::adamw()}}},
                                        .precision = Precision::bf16});
  return planned(*step.graph, {.precision = Precision::bf16});
}

size_t copies_by(const Executable& executable, const std::string& operator_name) {
  return count_nodes(executable, [&](const NodeReport& node) {
    return node.operator_name == operator_name && !node.candidates.empty();
  });
}

// A training step of Llama's form: heads are rotated where products left them, forwards and backwards in one
// kernel each, and attention reads and writes them there. What is split and joined is the loss's, as in
// GPT-2's form.
TEST(CudaRotaryPlan, RotatesHeadsWhereTheyLie) {
  const auto executable = planned_decoder(models::DecoderForm::llama);
  EXPECT_EQ(count_of_kernel(*executable, "generated.rotary_embedding"), size_t{2 * 2 * kLayers});
  EXPECT_EQ(count_of_kernel(*executable, "cudnn.attention"), size_t{kLayers});
  EXPECT_EQ(count_of_kernel(*executable, "cudnn.attention_gradient"), size_t{kLayers});
  const auto other = planned_decoder(models::DecoderForm::gpt2);
  for (const std::string name : {"transpose", "split", "concat"})
    EXPECT_EQ(copies_by(*executable, name), copies_by(*other, name)) << name;
  EXPECT_EQ(copies_by(*executable, "transpose"), 0U);
}

}  // namespace
}  // namespace tessera::testing
