// Rows that are added to those of a table: whatever indices name, and in whichever order they do.
#include <algorithm>
#include <functional>
#include <map>

#include "device_cuda/cuda_case.h"
#include "kernels/block_sizes.h"
#include "support/every_kernel.h"
#include "support/operator_tolerance.h"

namespace tessera::testing {
namespace {

// The index of an update, of so many of a table of so many rows.
using IndexRule = std::function<int64_t(int64_t update, int64_t updates, int64_t extent)>;

// Out of order, each row of the table but the last as often as the others.
int64_t scattered(int64_t update, int64_t, int64_t extent) {
  constexpr int64_t kStep = 7919;
  return update * kStep % std::max<int64_t>(extent - 1, 1);
}
int64_t descending(int64_t update, int64_t updates, int64_t extent) {
  return (updates - 1 - update) % extent;
}
int64_t last(int64_t, int64_t, int64_t extent) {
  return extent - 1;
}
// As texts have them: a token that fills rows, among others.
int64_t padded(int64_t update, int64_t updates, int64_t extent) {
  return update % 3 == 0 ? scattered(update, updates, extent) : extent / 2;
}

struct ScatterCase {
  std::string name;
  int64_t updates, extent, inner;
  IndexRule index = scattered;
  std::string type = "fp16";
  std::string index_type = "int32";
};

// Some updates for a row of the table, and rows that none names; rows of more than a range; several chunks of
// updates and one; exactly a piece, one more, and many; fewer columns than threads and more; types that are
// summed in their own.
std::vector<ScatterCase> scatter_cases() {
  return {{"Words", 3000, 900, 40},
          {"WordsInAnyOrder", 3000, 900, 40, descending, "fp32"},
          {"PaddedWords", 5000, 700, 260, padded, "bf16"},
          {"ManyMoreRowsThanUpdates", 100, 70001, 8, scattered, "fp32", "int64"},
          {"TwoRows", 5000, 2, 300, descending},
          {"TwoRowsBfloat16", 700, 2, 520, descending, "bf16"},
          {"OneTarget", 2100, 300, 20, last, "fp32"},
          {"OneRow", 1500, 1, 33, last, "fp32"},
          {"APiece", 64, 3, 5, last, "fp32"},
          {"APieceAndOne", 65, 3, 5, last, "fp32"},
          {"OneUpdate", 1, 7, 5, scattered, "fp32"},
          {"NoUpdate", 0, 7, 5, scattered, "fp32"},
          {"OneColumn", 4097, 257, 1, padded, "fp32", "int64"},
          {"WholeNumbers", 2500, 3, 9, descending, "int64"},
          {"Fp64", 1500, 4, 8, descending, "fp64"}};
}

class CudaScatterAdd : public ::testing::TestWithParam<ScatterCase> {
 protected:
  std::vector<Tensor> inputs() const {
    const ScatterCase& own = GetParam();
    std::vector<Tensor> inputs = random_inputs(*graph_->nodes().front(), -2, 2);
    for (int64_t i = 0; i < own.updates; ++i)
      inputs[0].set(i, static_cast<double>(own.index(i, own.updates, own.extent)));
    return inputs;
  }

  Tolerance tolerance() const {
    const ScatterCase& own = GetParam();
    std::map<int64_t, int64_t> terms;
    for (int64_t i = 0; i < own.updates; ++i) ++terms[own.index(i, own.updates, own.extent)];
    int64_t most = 1;
    for (const auto& [row, count] : terms) most = std::max(most, count);
    return tolerance_for(OperatorClass::reduction, graph_->nodes().front()->output()->data_type(),
                         {.terms = most, .magnitude = 2});
  }

  std::unique_ptr<Graph> graph_ = parse_graph(fmt::format(
      "graph g(input %i: {4}[{0}], input %u: {3}[{0}, {2}]) {{\n"
      "  %y: {3}[{1}, {2}] = scatter_add(%i, %u) {{extent = [{1}]}}\n  output y = %y\n}}",
      GetParam().updates, GetParam().extent, GetParam().inner, GetParam().type, GetParam().index_type));
};

TEST_P(CudaScatterAdd, CudaEveryKernel) {
  TESSERA_NEEDS_GPU();
  const Node& node = *graph_->nodes().front();
  expect_every_kernel(node, inputs(), {tolerance()}, {false, false}, gpu_or_null());
}

// An index that names no row adds nothing, in whichever range and chunk it is.
TEST_P(CudaScatterAdd, CudaLeavesOutIllegalIndices) {
  TESSERA_NEEDS_GPU();
  const Node& node = *graph_->nodes().front();
  const ScatterCase& own = GetParam();
  std::vector<Tensor> given = inputs(), expected = inputs();
  for (int64_t i = 0; i < own.updates; i += 3) {
    given[0].set(i, i % 2 == 0 ? -1.0 : static_cast<double>(own.extent));
    for (int64_t column = 0; column < own.inner; ++column) expected[1].set(i * own.inner + column, 0);
  }
  const Expectation expectation = expectation_of(*graph_, expected, {tolerance()});
  const KernelRequest request{.node = node, .frozen_inputs = {false, false}};
  for (const KernelCandidate& candidate : gpu_or_null()->candidates(node)) {
    if (candidate.name.starts_with("reference")) continue;
    run_candidate(*gpu_or_null(), candidate, request, given, candidate.name,
                  [&](const std::vector<Tensor>& actual, const std::string& context) {
                    EXPECT_TRUE(agrees(actual, expectation)) << context;
                  });
  }
}

TEST_P(CudaScatterAdd, CudaCompile) {
  EXPECT_GT(compile_candidates(*graph_->nodes().front()), 0U);
}

// Pieces are added up by a launch of their own, which so few updates that they are one do not need.
TEST_P(CudaScatterAdd, CudaJoinsPieces) {
  const Node& node = *graph_->nodes().front();
  cuda::Context card("h100");
  const KernelRequest request{.node = node, .frozen_inputs = {false, false}};
  const std::unique_ptr<Kernel> kernel = cuda::cuda_candidates(node, card).front().create(request);
  const bool joins = card.modules().sources().front().find("join_pieces") != std::string::npos;
  EXPECT_EQ(joins, GetParam().updates > kScatterPiece);
}

INSTANTIATE_TEST_SUITE_P(DeviceCuda, CudaScatterAdd, ::testing::ValuesIn(scatter_cases()),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace tessera::testing
