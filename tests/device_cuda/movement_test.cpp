// Moves by whole accesses.
#include "tessera/ops/functions.h"

#include "device_cuda/cuda_case.h"
#include "passes/run_pass.h"
#include "support/every_kernel.h"

namespace tessera::testing {
namespace {

struct MoveCase {
  std::string name;
  std::string graph;
  std::string access;  // of the move that begins with the first of them
  std::string function = "strided_move";
};

// Of the last axis whole accesses, as wide as extents and places allow; rows of an odd length; an axis that
// is not the last one any more; long rows that begin anywhere, which warps walk along.
std::vector<MoveCase> move_cases() {
  return {
      {"Heads",
       "input %x: fp16[3, 10, 12, 64]) {\n  %y: fp16[3, 12, 10, 64] = transpose(%x) {permutation = [0, 2, 1, "
       "3]}\n"
       "  output y = %y\n}",
       "const uint4* x"},
      {"HalfAnAccess",
       "input %x: bf16[5, 7, 12]) {\n  %y: bf16[7, 5, 12] = transpose(%x) {permutation = [1, 0, 2]}\n"
       "  output y = %y\n}",
       "const uint64* x"},
      {"OddRows",
       "input %x: fp16[5, 7, 3]) {\n  %y: fp16[7, 5, 3] = transpose(%x) {permutation = [1, 0, 2]}\n"
       "  output y = %y\n}",
       "const uint16* x"},
      {"LastAxisMoves",
       "input %x: fp32[4, 6, 8]) {\n  %y: fp32[4, 8, 6] = transpose(%x) {permutation = [0, 2, 1]}\n"
       "  output y = %y\n}",
       "const uint32* x"},
      {"Slice",
       "input %x: fp32[6, 40]) {\n  %y: fp32[6, 16] = slice(%x) {starts = [0, 8], limits = [6, 24], strides "
       "= "
       "[1, 1]}\n"
       "  output y = %y\n}",
       "const uint4* x"},
      {"SliceFromAnOddPlace",
       "input %x: fp32[6, 40]) {\n  %y: fp32[6, 16] = slice(%x) {starts = [0, 3], limits = [6, 19], strides "
       "= "
       "[1, 1]}\n"
       "  output y = %y\n}",
       "const uint32* x"},
      {"Concat",
       "input %a: fp16[4, 8], input %b: fp16[4, 24]) {\n  %y: fp16[4, 32] = concat(%a, %b) {axis = 1}\n"
       "  output y = %y\n}",
       "const uint4* x"},
      {"CutRows",
       "input %x: bf16[5, 304]) {\n  %y = slice(%x) {starts = [0, 0], limits = [5, 301], strides = [1, 1]}\n"
       "  output y = %y\n}",
       "const uint16* x", "move_rows"},
      {"CutRowsOfSeveralParts",
       "input %x: fp16[2, 3, 3011]) {\n  %y = slice(%x) {starts = [0, 1, 5], limits = [2, 3, 2998], strides "
       "= "
       "[1, 1, 1]}\n  output y = %y\n}",
       "const uint16* x", "move_rows"},
      {"PaddedRows",
       "input %x: bf16[7, 1025]) {\n  %y = pad(%x) {low = [0, 0], high = [0, 7], interior = [0, 0]}\n"
       "  output y = %y\n}",
       "const uint16* x", "move_rows"},
      {"RowsPaddedAllAround",
       "input %x: fp32[3, 4, 515]) {\n  %y = pad(%x) {low = [1, -1, 2], high = [0, 2, -1], interior = [0, 0, "
       "0], value = 2.5}\n  output y = %y\n}",
       "const uint32* x", "move_rows"},
      {"RowsOfBytes",
       "input %x: uint8[9, 1300]) {\n  %y = slice(%x) {starts = [0, 1], limits = [9, 1296], strides = [1, "
       "1]}\n  output y = %y\n}",
       "const uint8* x", "move_rows"},
      {"RowsOfFp64",
       "input %x: fp64[3, 131]) {\n  %y = slice(%x) {starts = [0, 1], limits = [3, 130], strides = [1, 1]}\n"
       "  output y = %y\n}",
       "const uint64* x", "move_rows"},
      {"PaddedBetween",
       "input %x: bf16[3, 300]) {\n  %y = pad(%x) {low = [1, 0], high = [0, 3], interior = [0, 1], value = "
       "-1.0}\n  output y = %y\n}",
       "const uint16* x"},
      {"PaddedWithoutAnyOfIt",
       "input %x: fp16[3, 4]) {\n  %y = pad(%x) {low = [0, -4], high = [0, 6], interior = [0, 0], value = "
       "1.0}\n  output y = %y\n}",
       "const uint32* x"},
  };
}

class CudaMoves : public ::testing::TestWithParam<MoveCase> {
 protected:
  std::unique_ptr<Graph> graph_ = parse_graph("graph g(" + GetParam().graph);
};

TEST_P(CudaMoves, CudaEveryKernel) {
  TESSERA_NEEDS_GPU();
  const Node& node = *graph_->nodes().front();
  expect_every_kernel(node, random_inputs(node, -2, 2), {Tolerance{}},
                      std::vector<bool>(node.inputs().size(), false), gpu_or_null());
}

TEST_P(CudaMoves, CudaTakeWholeAccesses) {
  const Node& node = *graph_->nodes().front();
  EXPECT_GT(compile_candidates(node), 0U);
  cuda::Context card("h100");
  const KernelRequest request{.node = node, .frozen_inputs = std::vector<bool>(node.inputs().size(), false)};
  const std::unique_ptr<Kernel> kernel = cuda::cuda_candidates(node, card).front().create(request);
  const std::string source = card.modules().sources().front();
  EXPECT_NE(source.find(GetParam().access), std::string::npos) << source;
  EXPECT_NE(source.find(GetParam().function + "(m, x, y"), std::string::npos) << source;
}

INSTANTIATE_TEST_SUITE_P(DeviceCuda, CudaMoves, ::testing::ValuesIn(move_cases()),
                         [](const auto& test) { return test.param.name; });

struct GatherCase {
  std::string name, type;
  Shape table;
  int64_t axis;
  std::string access;  // of rows, or of what is after the axis
};

// Rows of whole accesses, of half of one, of an odd length; elements by themselves; an axis with others
// before.
std::vector<GatherCase> gather_cases() {
  return {{"Words", "fp32", {700, 1024}, 0, "const uint4* table"},
          {"HalfAnAccess", "bf16", {50, 12}, 0, "const uint64* table"},
          {"OddRows", "fp16", {50, 7}, 0, "const uint16* table"},
          {"Numbers", "int32", {900}, 0, "const uint32* table"},
          {"InnerAxis", "fp16", {5, 40, 24}, 1, "const uint4* table"},
          {"Bytes", "bool", {30, 3}, 0, "const uint8* table"}};
}

class CudaGather : public ::testing::TestWithParam<GatherCase> {
 protected:
  static std::unique_ptr<Graph> make() {
    const GatherCase& own = GetParam();
    auto graph = std::make_unique<Graph>("g");
    Value* table =
        graph->add_input(InputRole::input, "table", {parse_data_type(own.type), to_symbolic(own.table)});
    Value* indices = graph->add_input(InputRole::input, "indices", {DataType::int32, {3, 11}});
    graph->add_output("y", ops::gather(table, indices, own.axis));
    return graph;
  }
};

TEST_P(CudaGather, CudaEveryKernel) {
  TESSERA_NEEDS_GPU();
  const std::unique_ptr<Graph> graph = make();
  const Node& node = *graph->nodes().front();
  const int64_t extent = GetParam().table[static_cast<size_t>(GetParam().axis)];
  std::vector<Tensor> inputs = random_inputs(node, -2, 2);
  for (int64_t i = 0; i < inputs[1].size(); ++i)
    inputs[1].set(i, static_cast<double>((extent - 1 + 7 * i) % extent));
  expect_every_kernel(node, inputs, {Tolerance{}}, {false, false}, gpu_or_null());
}

TEST_P(CudaGather, CudaTakesWholeAccesses) {
  const std::unique_ptr<Graph> graph = make();
  const Node& node = *graph->nodes().front();
  EXPECT_GT(compile_candidates(node), 0U);
  cuda::Context card("h100");
  const KernelRequest request{.node = node, .frozen_inputs = {false, false}};
  const std::unique_ptr<Kernel> kernel = cuda::cuda_candidates(node, card).front().create(request);
  const std::string source = card.modules().sources().front();
  EXPECT_NE(source.find(GetParam().access), std::string::npos) << source;
}

INSTANTIATE_TEST_SUITE_P(DeviceCuda, CudaGather, ::testing::ValuesIn(gather_cases()),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace tessera::testing
