// All passes together.
#include <algorithm>

#include <gtest/gtest.h>

#include "passes/run_pass.h"
#include "support/expect_error.h"
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

// What lower_precision leaves in 32 bits is dead, and must not count as a reader.
TEST(Pipeline, PutsActivationsBeforeReshapesInAnyPrecision) {
  for (const Precision precision : {Precision::fp32, Precision::fp16}) {
    const auto graph = parse_graph(R"(
      graph g(input %x: fp32[3, 8], parameter %first: fp32[8, 4], parameter %bias: fp32[4],
              parameter %second: fp32[4, 8]) {
        %product = matmul(%x, %first)
        %sum = add(%product, %bias)
        %pixels = reshape(%sum) {shape = [3, 4, 1, 1]}
        %active = silu(%pixels)
        %rows = reshape(%active) {shape = [3, 4]}
        %y = matmul(%rows, %second)
        output y = %y
      })");
    PassContext context;
    context.options.precision = precision;
    context.options.fuse = false;
    run_pipeline(*graph, pipeline(context.options), context, {.disabled = {}, .verify = true, .dump = {}});
    int found = 0;
    for (const auto& node : graph->nodes()) {
      EXPECT_NE(node->operator_name(), "reshape") << print(*graph);
      found += node->operator_name() == "silu" ? 1 : 0;
    }
    EXPECT_EQ(found, 1);
  }
}

size_t position(const std::vector<Pass>& passes, const std::string& name) {
  const auto at =
      std::find_if(passes.begin(), passes.end(), [&](const Pass& pass) { return pass.name == name; });
  return static_cast<size_t>(at - passes.begin());
}

void expect_refused(const std::vector<Pass>& passes, const std::string& early, const std::string& late) {
  EXPECT_ERROR(check_order(passes), ErrorCode::internal,
               fmt::format("pass '{}' runs before '{}' and must run after it", early, late));
}

// Each pass and each that it names change places in the list.
TEST(Pipeline, RefusesEachPassOnTheWrongSideOfAnother) {
  const std::vector<Pass> passes = pipeline({});
  check_order(passes);
  int swapped = 0;
  for (const Pass& pass : passes) {
    for (const auto* names : {&pass.after, &pass.before}) {
      for (const std::string& name : *names) {
        ASSERT_LT(position(passes, name), passes.size()) << pass.name << " names '" << name << "'";
        std::vector<Pass> wrong{passes[position(passes, pass.name)], passes[position(passes, name)]};
        if (names == &pass.before) std::swap(wrong[0], wrong[1]);
        expect_refused(wrong, wrong[0].name, wrong[1].name);
        ++swapped;
      }
    }
  }
  EXPECT_GE(swapped, 10);
}

// Whatever stands between, and for every run of a pass that runs several times.
TEST(Pipeline, LooksAtEveryRunOfAPass) {
  std::vector<Pass> passes = pipeline({});
  passes.push_back(passes[position(passes, "common_subexpressions")]);
  expect_refused(passes, "recompute_activations", "common_subexpressions");
}

TEST(Pipeline, WithoutFusionsKeepsItsOrder) {
  const std::vector<Pass> passes = pipeline({.fuse = false});
  check_order(passes);
  EXPECT_EQ(position(passes, "fuse_patterns"), passes.size());
}

}  // namespace
}  // namespace tessera::testing
