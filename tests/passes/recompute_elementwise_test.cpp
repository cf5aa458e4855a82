#include <string>
#include <vector>

#include "passes/run_pass.h"

namespace tessera::testing {
namespace {

const PassContext kAsked{.options = {.recompute = true}};

// Two products with gelu between them, and their gradients; dz stands for what the loss sends back. y has 16
// KiB.
const std::string kInputs = R"(
  graph g(input %a: fp32[64, 32], parameter %w1: fp32[32, 64], parameter %w2: fp32[64, 16]) {)";
const std::string kForward = R"(
    %x = matmul(%a, %w1)
    %y = gelu(%x)
    %z = matmul(%y, %w2))";
const std::string kBackward = R"(
    %dz = multiply(%z, %z)
    %dy = matmul(%dz, %w2) {transpose_b = true})";
const std::string kLate = R"(
    %dw2 = matmul(%y, %dz) {transpose_a = true})";
const std::string kRecomputed = R"(
    %y.recomputed/gelu = gelu(%x)
    %dw2 = matmul(%y.recomputed/gelu, %dz) {transpose_a = true})";
const std::string kGradient = R"(
    %part = erf(%x)
    %dx = multiply(%dy, %part)
    %dw1 = matmul(%a, %dx) {transpose_a = true})";
const std::string kOutputs = R"(
    output z = %z
    output dw1 = %dw1
    output dw2 = %dw2
  })";

void expect_recomputed(const std::string& before, const std::string& after) {
  expect_pass("recompute_activations", before, after, kAsked);
}
void expect_kept(const std::string& text, const PassContext& context = kAsked) {
  expect_no_change("recompute_activations", text, context);
}

TEST(RecomputeElementwise, GivesTheWeightGradientACopyOfWhatTheGradientBeforeItKeeps) {
  expect_recomputed(kInputs + kForward + kBackward + kLate + kGradient + kOutputs,
                    kInputs + kForward + kBackward + kRecomputed + kGradient + kOutputs);
}

TEST(RecomputeElementwise, IsForThoseWhoAskForIt) {
  expect_kept(kInputs + kForward + kBackward + kLate + kGradient + kOutputs, {});
  expect_kept(kInputs + kForward + kBackward + kLate + kGradient + kOutputs,
              {.options = {.recompute = false}});
}

// The same graph with a y of 1 MiB.
std::string large(std::string text) {
  for (size_t at = text.find("64"); at != std::string::npos; at = text.find("64")) text.replace(at, 2, "512");
  return text;
}

// The gradient of its reader keeps x elementwise, so that the copy is made beside that.
TEST(RecomputeElementwise, MakesACopyBesideItsKeeperWhereAShareOfAllHasRoom) {
  const std::string before = large(kInputs + kForward + kBackward + kLate + kGradient + kOutputs);
  const std::string after = large(kInputs + kForward + kBackward + kRecomputed + kGradient + kOutputs);
  const std::unique_ptr<Graph> graph = parse_graph(before);
  double written = 0, flops = 0;
  for (const auto& node : graph->nodes()) {
    for (const auto& output : node->outputs()) written += static_cast<double>(output->type().bytes());
    if (node->schema().flops) flops += node->schema().flops(*node);
  }
  ASSERT_GT(flops, 0);
  const auto of_share = [](double share, double bytes_per_flop) {
    return PassContext{.target = {.recompute_share_beside = share, .bytes_per_flop = bytes_per_flop}};
  };
  const double copy = 1 << 20;
  expect_kept(before, of_share(0.99 * copy / written, 0));
  expect_pass("recompute_activations", before, after, of_share(1.01 * copy / written, 0));
  expect_kept(before, of_share(0.99 * copy / (written + 3 * flops), 3));
  expect_pass("recompute_activations", before, after, of_share(1.01 * copy / (written + 3 * flops), 3));
  PassContext refused = of_share(1, 1);
  refused.options.recompute = false;
  expect_kept(before, refused);
  expect_kept(kInputs + kForward + kBackward + kLate + kGradient + kOutputs, of_share(1, 1));  // of 16 KiB
}

// Gated: the other factor's gradient reads the activation, which the activation's own gradient recomputes on
// the way, cast and all; nothing is written for it, so it takes no share. What is gated is written, and made
// of what memory holds.
TEST(RecomputeElementwise, MakesACopyThatOnlyElementwiseNodesBesideItRead) {
  const std::string forward = R"(
  graph g(input %a: fp32[512, 512], parameter %w1: fp32[512, 512], parameter %w2: fp32[512, 512],
          parameter %w3: fp32[512, 512]) {
    %x = matmul(%a, %w1)
    %narrow = silu(%x)
    %y = cast(%narrow) {type = fp64}
    %gate = matmul(%a, %w3)
    %other = cast(%gate) {type = fp64}
    %gated = multiply(%y, %other)
    %h = cast(%gated) {type = fp32}
    %z = matmul(%h, %w2)
    %dz = multiply(%z, %z))";
  const std::string weight_gradient = R"(
    %dw2 = matmul(%h, %dz) {transpose_a = true})";
  const std::string weight_gradient_of_copy = R"(
    %h.recomputed/silu = silu(%x)
    %h.recomputed/cast = cast(%h.recomputed/silu) {type = fp64}
    %h.recomputed/cast_1 = cast(%gate) {type = fp64}
    %h.recomputed/multiply = multiply(%h.recomputed/cast, %h.recomputed/cast_1)
    %h.recomputed/cast_2 = cast(%h.recomputed/multiply) {type = fp32}
    %dw2 = matmul(%h.recomputed/cast_2, %dz) {transpose_a = true})";
  const std::string backward = R"(
    %dh = matmul(%dz, %w2) {transpose_b = true}
    %wide = cast(%dh) {type = fp64}
    %dy = multiply(%wide, %other))";
  const std::string late = R"(
    %dother = multiply(%wide, %y))";
  const std::string recomputed = R"(
    %y.recomputed/silu = silu(%x)
    %y.recomputed/cast = cast(%y.recomputed/silu) {type = fp64}
    %dother = multiply(%wide, %y.recomputed/cast))";
  const std::string end = R"(
    %slope = sigmoid(%x)
    %part = cast(%slope) {type = fp64}
    %dx = multiply(%dy, %part)
    output dw2 = %dw2
    output dother = %dother
    output dx = %dx
  })";
  const std::string before = forward + weight_gradient + backward + late + end;
  const auto expect = [&](double share, const std::string& after) {
    expect_pass("recompute_activations", before, after, {.target = {.recompute_share_beside = share}});
  };
  expect(1e-9, forward + weight_gradient + backward + recomputed + end);
  expect(1, forward + weight_gradient_of_copy + backward + recomputed + end);
}

// A product keeps x: the copy would be a pass of its own.
TEST(RecomputeElementwise, MakesNoCopyByItselfUnlessAsked) {
  const std::string gradient = R"(
    %dx = matmul(%dy, %x) {transpose_b = true}
    %dw1 = multiply(%dx, %dx))";
  const std::string before = large(kInputs + kForward + kBackward + kLate + gradient + kOutputs);
  expect_kept(before, {.target = {.recompute_share_beside = 1}});
  expect_recomputed(before, large(kInputs + kForward + kBackward + kRecomputed + gradient + kOutputs));
}

TEST(RecomputeElementwise, FindsReadersOfViews) {
  const std::string forward = R"(
    %x = matmul(%a, %w1)
    %y = gelu(%x)
    %flat = reshape(%y) {shape = [64, 64]}
    %z = matmul(%y, %w2))";
  const std::string late = R"(
    %dw2 = matmul(%flat, %dz) {transpose_a = true})";
  const std::string recomputed = R"(
    %y.recomputed/gelu = gelu(%x)
    %y.recomputed/reshape = reshape(%y.recomputed/gelu) {shape = [64, 64]}
    %dw2 = matmul(%y.recomputed/reshape, %dz) {transpose_a = true})";
  expect_recomputed(kInputs + forward + kBackward + late + kGradient + kOutputs,
                    kInputs + forward + kBackward + recomputed + kGradient + kOutputs);
}

TEST(RecomputeElementwise, KeepsItWhereTheOperandIsNotKept) {
  expect_kept(kInputs + kForward + kBackward + kLate + R"(
    output z = %z
    output dw1 = %dy
    output dw2 = %dw2
  })");
}

// What made it is freed before it is read again.
TEST(RecomputeElementwise, KeepsItWhereTheOperandGoesFirst) {
  expect_kept(kInputs + kForward + kBackward + kGradient + R"(
    %rest = multiply(%z, %z)
    %late = add(%rest, %dz)
    %dw2 = matmul(%y, %late) {transpose_a = true})" +
              kOutputs);
}

TEST(RecomputeElementwise, KeepsWhatOnlyTheForwardHalfReads) {
  // A residual depends on the product that reads it first.
  expect_kept(R"(
  graph g(input %a: fp32[64, 32], parameter %w1: fp32[32, 64], parameter %w2: fp32[64, 64]) {
    %x = matmul(%a, %w1)
    %y = gelu(%x)
    %z = matmul(%y, %w2)
    %sum = add(%y, %z)
    %dy = matmul(%sum, %w2) {transpose_b = true}
    %part = erf(%x)
    %dx = multiply(%dy, %part)
    %dw1 = matmul(%a, %dx) {transpose_a = true}
    output dw1 = %dw1
  })");
}

TEST(RecomputeElementwise, KeepsAnOutputOfTheGraphAlsoAsAView) {
  for (const std::string shown : {"%y", "%flat"}) {
    expect_kept(kInputs + kForward + R"(
    %flat = reshape(%y) {shape = [4096]})" +
                kBackward + kLate + kGradient + "\n output y = " + shown + kOutputs);
  }
}

TEST(RecomputeElementwise, LeavesWhatIsSmall) {
  expect_kept(R"(
  graph g(input %a: fp32[8, 8], parameter %w1: fp32[8, 8], parameter %w2: fp32[8, 8]) {)" +
              kForward + kBackward + kLate + kGradient + kOutputs);
}

// One of two in a row: the copy of the second would keep the first.
TEST(RecomputeElementwise, MakesNoCopyOfWhatIsItselfRecomputed) {
  const auto graph = parse_graph(kInputs + R"(
    %x = matmul(%a, %w1)
    %y1 = gelu(%x)
    %y2 = gelu(%y1)
    %z = matmul(%y2, %w2)
    %dz = multiply(%z, %z)
    %dy2 = matmul(%dz, %w2) {transpose_b = true}
    %dw2 = matmul(%y2, %dz) {transpose_a = true}
    %part2 = erf(%y1)
    %dy1 = multiply(%dy2, %part2)
    %dw0 = matmul(%y1, %dy1) {transpose_a = true}
    %part1 = erf(%x)
    %dx = multiply(%dy1, %part1)
    %dw1 = matmul(%a, %dx) {transpose_a = true}
    output dw0 = %dw0
    output dw1 = %dw1
    output dw2 = %dw2
  })");
  const auto before = graph->clone();
  EXPECT_TRUE(run_pass(*graph, "recompute_activations", kAsked));
  verify(*graph);
  std::vector<std::string> copies;
  for (const auto& node : graph->nodes())
    if (node->name().find(".recomputed/") != std::string::npos) copies.push_back(node->name());
  EXPECT_EQ(copies, std::vector<std::string>{"y1.recomputed/gelu"});
  expect_same_results(*before, *graph, kReordered);
}

}  // namespace
}  // namespace tessera::testing
