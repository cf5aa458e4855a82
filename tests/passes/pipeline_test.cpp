// All passes together.
#include <algorithm>

#include <gtest/gtest.h>

#include "passes/run_pass.h"
#include "support/fusions.h"

namespace tessera::testing {
namespace {

// As a GPU asks for them.
PassContext grouping() {
  PassContext context =
      brings({backend::pooled_batch_norm_gradient_pattern(), backend::pooled_batch_norm_pattern()});
  context.target.reductions_per_cluster = 4;
  context.target.values_per_group = 100;
  return context;
}

TEST(Pipeline, LeavesNothingThatNothingReads) {
  const auto before = parse_graph(R"(
    graph g(input %x: fp32[2, 4, 4, 8], parameter %scale: fp32[8], parameter %p: fp32[5], state %mean: fp32[8],
            state %m: fp32[5]) {
      %y, %batch_mean, %variance = batch_norm_training(%x, %scale, %scale)
      %sum = add(%mean, %batch_mean)
      %next = multiply(%p, %m)
      output y = %x
      update %mean = %sum
      update %m = %next
    })");
  const auto after = before->clone();
  run_pipeline(*after, pipeline({}), grouping(), {.disabled = {}, .verify = true, .dump = {}});
  for (const auto& node : after->nodes()) {
    const auto& outputs = node->outputs();
    EXPECT_TRUE(std::any_of(outputs.begin(), outputs.end(), [&](const auto& output) {
      return after->is_used(output.get());
    })) << print(*node);
  }
  expect_same_results(*before, *after, kReordered);
}

}  // namespace
}  // namespace tessera::testing
