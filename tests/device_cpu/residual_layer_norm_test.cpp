#include <algorithm>
#include <tuple>

#include "tessera/compile/executable.h"

#include "support/every_kernel.h"
#include "support/operator_tolerance.h"
#include "support/residual_layer_norm_case.h"

namespace tessera::testing {
namespace {

using ResidualNormParameters = std::tuple<ResidualNormText, ResidualNormExtents>;

class ResidualLayerNorm : public ::testing::TestWithParam<ResidualNormParameters> {};

TEST_P(ResidualLayerNorm, EveryKernel) {
  const auto& [text, own] = GetParam();
  const std::vector<std::string> names = expect_every_residual_norm(text, own, Device::cpu());
  const bool has_loops = std::find(names.begin(), names.end(), "loops." + text.kind) != names.end();
  EXPECT_EQ(has_loops, own.type != DataType::fp64) << "fp64 is left to the body";
}

INSTANTIATE_TEST_SUITE_P(DeviceCpu, ResidualLayerNorm,
                         ::testing::Combine(::testing::ValuesIn(residual_norm_texts()),
                                            ::testing::ValuesIn(residual_norm_extents())),
                         [](const auto& test) {
                           return name_of(std::get<0>(test.param), std::get<1>(test.param));
                         });

// Rows shorter than a vector, of odd lengths, of several partial sums; few, and more than a block of them.
TEST(LayerNormAlone, EveryKernel) {
  for (const NormAlone& own :
       {NormAlone{9, 3}, {7, 33}, {5, 768}, {2, 1003}, {500, 40}, {9, 3, false}, {5, 768, false}}) {
    for (const std::string type : {"fp32", "fp16", "bf16", "fp64"}) {
      const std::unique_ptr<Graph> graph = norm_alone(own, type);
      const Node& node = *graph->nodes().front();
      const std::vector<Tensor> inputs = random_inputs(node, 0.5, 2);
      const std::vector<std::string> names = expect_every_kernel(
          node, inputs, tolerances_of(node, inputs), std::vector<bool>(inputs.size(), false), Device::cpu());
      const bool has_rows = std::find(names.begin(), names.end(), "loops.layer_norm_rows") != names.end();
      EXPECT_EQ(has_rows, type != "fp64") << "fp64 is left to clusters";
    }
  }
}

TEST(LayerNormAlone, IsOneKernelOverTheLastAxisAlone) {
  const std::unique_ptr<Executable> rows = compile(*norm_alone({64, 768}, "fp32"), Device::cpu());
  ASSERT_EQ(rows->nodes().size(), 1U);
  EXPECT_EQ(rows->nodes().front().kernel, "loops.layer_norm_rows");
  const std::unique_ptr<Graph> planes = parse_graph(
      "graph g(input %x: fp32[8, 3, 4], input %scale: fp32[3, 4], input %bias: fp32[3, 4]) {\n"
      "  %y, %mean, %inverse = layer_norm(%x, %scale, %bias) {axes = 2}\n  output y = %y\n}");
  EXPECT_GT(compile(*planes, Device::cpu())->nodes().size(), 1U) << "clusters";
}

// The body is what was there.
TEST(ResidualLayerNormPattern, ComputesTheSame) {
  for (const ResidualNormText& text : residual_norm_texts()) {
    const ResidualNormExtents own{{4, 3, 8}, DataType::fp32};
    expect_same_results(*residual_norm_graph(text.text, own), *fused_residual_norm(text, own).graph,
                        kReordered);
  }
}

// Each differs from a text that is fused by one thing.
TEST(ResidualLayerNormPattern, LeavesWhatItsKernelsDoNotTake) {
  const std::string start =
      "graph g(input %h: fp32[2, 3, 4], input %r: fp32[2, 3, 4], input %scale: fp32[4], input %shift: "
      "fp32[4], "
      "input %rows: fp32[3, 4], input %wide: fp32[3, 4], input %c: int64[2]) {\n";
  const std::string drop = "%d = dropout(%h, %c) {rate = 0.5, stream = 1}\n";
  const std::string norm = "%y, %mean, %inverse = layer_norm(%s, %scale, %shift) {axes = 1}\noutput y = %y\n";
  const std::vector<std::string> left{
      start + "%s = add(%h, %r)\n" + norm + "}", start + drop + "%s = add(%d, %rows)\n" + norm + "}",
      start + drop + "%s = multiply(%d, %r)\n" + norm + "}",
      start + drop + "%s = add(%d, %r)\n" + norm + "output d = %d\n}",
      start + drop + "%s = add(%d, %r)\n%y, %mean, %inverse = layer_norm(%s, %rows, %wide) {axes = 2}\n" +
          "output y = %y\n}"};
  for (const std::string& text : left) expect_no_change("fuse_patterns", text, residual_norm_patterns());
  const auto taken = parse_graph(start + drop + "%s = add(%d, %r)\n" + norm + "}");
  EXPECT_TRUE(run_pass(*taken, "fuse_patterns", residual_norm_patterns()));
}

TEST(ResidualLayerNormPattern, LeavesGradientsThatGoNoWhereElse) {
  const std::string start =
      "graph g(input %dy: fp32[6, 4], input %s: fp32[6, 4], input %scale: fp32[4], input %mean: fp32[6], "
      "input %scale_of_row: fp32[6], input %c: int64[2]) {\n"
      "%dx, %dscale, %dshift = layer_norm_gradient(%dy, %s, %scale, %mean, %scale_of_row) {axes = 1}\n";
  expect_no_change("fuse_patterns", start + "output dx = %dx\n}", residual_norm_patterns());
  expect_no_change("fuse_patterns",
                   start +
                       "%d = dropout(%dx, %c) {rate = 0.5, stream = 1}\n"
                       "%b = reduce_sum(%d) {axes = [0]}\noutput b = %b\n}",
                   residual_norm_patterns());
}

}  // namespace
}  // namespace tessera::testing
