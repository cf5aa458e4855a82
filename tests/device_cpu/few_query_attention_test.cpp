// Attention of a few queries to keys of which lengths hide the last: those are NaN here, and are not read.
#include <limits>

#include <fmt/format.h>

#include "tessera/ops/functions.h"

#include "support/every_kernel.h"

namespace tessera::testing {
namespace {

constexpr const char* kKernel = "loops.few_query_attention";

struct FewQueryCase {
  int64_t queries, keys, width, value_width;
  std::vector<int32_t> lengths;
  int64_t key_heads = 6;
};

class FewQueryAttention : public ::testing::TestWithParam<std::tuple<FewQueryCase, DataType>> {};

TEST_P(FewQueryAttention, ReadsWhatIsSeen) {
  constexpr int64_t kHeads = 6;
  const auto& [own, type] = GetParam();
  Graph graph;
  const auto batch = std::ssize(own.lengths);
  const auto input = [&](const char* name, int64_t heads, int64_t rows, int64_t width) {
    return graph.add_input(InputRole::input, name, {type, {batch, heads, rows, width}});
  };
  Value* lengths = graph.add_input(InputRole::input, "lengths", {DataType::int32, {batch}});
  const Node& node =
      *ops::attention(input("q", kHeads, own.queries, own.width),
                      input("k", own.key_heads, own.keys, own.width),
                      input("v", own.key_heads, own.keys, own.value_width), {.key_lengths = lengths})
           .y->producer();
  std::vector<Tensor> inputs = random_inputs(node, -1, 1);
  inputs[3] = Tensor::from<int32_t>({batch}, own.lengths);
  for (const size_t operand : {1, 2}) {
    const int64_t width = inputs[operand].shape()[3];
    for (int64_t i = 0; i < inputs[operand].size(); ++i) {
      const auto row = static_cast<size_t>(i / (width * own.keys * own.key_heads));
      if (i / width % own.keys >= own.lengths[row])
        inputs[operand].set(i, std::numeric_limits<double>::quiet_NaN());
    }
  }
  const Problem problem{.terms = std::max(own.keys, own.width), .magnitude = 2};
  const Tolerances tolerances{tolerance_for(OperatorClass::contraction, type, problem),
                              tolerance_for(OperatorClass::contraction, DataType::fp32, problem)};
  expect_every_kernel(node, inputs, tolerances, std::vector<bool>(4, false), Device::cpu(), true, kKernel);
}

std::string name_of(const ::testing::TestParamInfo<std::tuple<FewQueryCase, DataType>>& test) {
  const auto& [own, type] = test.param;
  return fmt::format("{}_{}_{}_{}_{}_of_{}", to_string(type), own.queries, own.keys, own.width,
                     own.value_width, own.key_heads);
}

// Fewer columns than a vector has, whole vectors, several at a time and what is left of them; no key hidden,
// all but one, and what several threads share.
INSTANTIATE_TEST_SUITE_P(
    DeviceCpu, FewQueryAttention,
    ::testing::Combine(::testing::Values(FewQueryCase{2, 20, 8, 16, {20, 3, 11}, 2},
                                         FewQueryCase{1, 9, 24, 8, {7, 9}, 1}, FewQueryCase{1, 1, 1, 1, {1}},
                                         FewQueryCase{1, 9, 5, 3, {9, 1, 4}},
                                         FewQueryCase{8, 33, 64, 64, {33, 2}},
                                         FewQueryCase{3, 40, 24, 100, {17, 40}},
                                         FewQueryCase{1, 700, 64, 64, {600, 3, 700}}),
                       ::testing::Values(DataType::fp32, DataType::bf16, DataType::fp16)),
    name_of);

// More queries are a product's, and those that see all keys, or by a bias, or that are trained, have what
// they had.
TEST(FewQueryAttentions, LeaveOthers) {
  const auto refusal = [](int64_t queries, bool lengths, bool bias, bool causal, bool trained = false) {
    Graph graph;
    const auto input = [&](const char* name, DataType type, const Shape& shape) {
      return graph.add_input(InputRole::input, name, {type, to_symbolic(shape)});
    };
    Value* q = input("q", DataType::fp32, {1, 2, queries, 4});
    Value* k = input("k", DataType::fp32, {1, 2, 6, 4});
    const ops::Attention attention =
        ops::attention(q, k, k,
                       {.causal = causal,
                        .bias = bias ? input("bias", DataType::fp32, {1, 1, queries, 6}) : nullptr,
                        .key_lengths = lengths ? input("lengths", DataType::int32, {1}) : nullptr});
    if (trained) graph.add_output("log_sum", attention.log_sum);
    const Node& node = *attention.y->producer();
    const KernelRequest request{.node = node,
                                .frozen_inputs = std::vector<bool>(node.inputs().size(), false)};
    for (const KernelCandidate& candidate : Device::cpu()->candidates(node)) {
      if (candidate.name == kKernel) return candidate.refusal(request);
    }
    return std::string("there is none");
  };
  EXPECT_EQ(refusal(8, true, false, false), "");
  EXPECT_NE(refusal(9, true, false, false), "");
  EXPECT_NE(refusal(1, false, false, false), "");
  EXPECT_NE(refusal(1, true, true, false), "");
  EXPECT_NE(refusal(1, true, false, true), "");
  EXPECT_NE(refusal(1, true, false, false, true), "");
}

}  // namespace
}  // namespace tessera::testing
