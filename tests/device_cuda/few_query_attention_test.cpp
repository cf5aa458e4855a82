// Attention of a few queries: the kernel of our own beside the reference, and what it leaves unread.
#include <limits>

#include "device_cuda/attention_cases.h"

namespace tessera::testing {
namespace {

// Blocks that share a head's keys, also with fewer for the last and in several steps, and one by itself.
std::vector<AttentionCase> few_query_cases() {
  std::vector<AttentionCase> result;
  for (const DataType type : {DataType::fp16, DataType::bf16, DataType::fp32}) {
    result.push_back({.batch = 1, .heads = 4, .queries = 1, .keys = 136, .bias = true, .type = type});
    result.push_back({.heads = 2, .queries = 3, .keys = 130, .width = 128, .value_width = 128, .type = type});
    result.push_back({.queries = 8, .keys = 5, .width = 32, .value_width = 32, .bias = true, .type = type});
    result.push_back({.batch = 3, .heads = 2, .queries = 4, .keys = 300, .type = type, .lengths = true});
    // A single key for many blocks, and a few more keys than blocks.
    result.push_back({.batch = 40, .heads = 1, .queries = 1, .keys = 390, .type = type, .lengths = true});
    result.push_back(
        {.batch = 3, .heads = 1, .queries = 2, .keys = 140, .bias = true, .type = type, .lengths = true});
    result.push_back(
        {.batch = 2, .heads = 6, .queries = 2, .keys = 140, .bias = true, .type = type, .key_heads = 2});
  }
  return result;
}

class FewQueryAttention : public ::testing::TestWithParam<AttentionCase> {};

TEST_P(FewQueryAttention, EveryKernel) {
  TESSERA_NEEDS_GPU();
  const RunCase own = run_case(GetParam(), 2 * kLargestOperand);
  expect_forward(own, forward_tolerances(GetParam()));
  EXPECT_EQ(refusal_of("generated.few_query_attention", own.attention(), true), "");
}

// As a cache of keys has them that nobody has written yet, here NaN.
TEST_P(FewQueryAttention, ReadsNoHiddenKeys) {
  TESSERA_NEEDS_GPU();
  const AttentionCase& own = GetParam();
  if (!own.lengths) return;
  RunCase run = run_case(own);
  const Tensor lengths = key_lengths_of(own);
  for (const size_t operand : {1, 2}) {
    Tensor& tensor = run.forward[operand];
    const int64_t row = tensor.shape()[3];
    for (int64_t i = 0; i < tensor.size(); ++i) {
      if (i / row % own.keys >= static_cast<int64_t>(lengths.at(i / (row * own.keys * own.heads))))
        tensor.set(i, std::numeric_limits<double>::quiet_NaN());
    }
  }
  expect_every_kernel(run.attention(), run.forward, forward_tolerances(own),
                      std::vector<bool>(run.forward.size(), false), gpu_or_null(), true,
                      "generated.few_query_attention");
}

// Its text needs no GPU.
TEST_P(FewQueryAttention, Compiles) {
  const RunCase own = run_case(GetParam());
  EXPECT_GT(compile_candidates(own.attention()), 0);
}

INSTANTIATE_TEST_SUITE_P(DeviceCuda, FewQueryAttention, ::testing::ValuesIn(few_query_cases()),
                         [](const auto& test) { return name_of(test.param); });

}  // namespace
}  // namespace tessera::testing
