// Matrix products of a frozen weight in panels.
#include "device/cpu/panels/panel_matmul.h"

#include <cmath>
#include <limits>
#include <string>

#include "tessera/ops/functions.h"

#include "passes/run_pass.h"
#include "support/contraction_chains.h"
#include "support/every_kernel.h"
#include "support/first_willing.h"
#include "support/fusions.h"

namespace tessera::testing {
namespace {

struct ProductCase {
  std::string name;
  Shape x;
  int64_t columns = 0;
  bool transposed = false;  // the weight is [columns, depth]
};

// One row and many; a weight larger than x, which threads share, and a smaller one; a depth of several
// passes; panels that are cut.
std::vector<ProductCase> cases() {
  return {{"one_row", {1, 64}, 48},
          {"few_rows", {2, 3, 40}, 64, true},
          {"rows_of_a_text", {1, 128, 96}, 208},
          {"deep", {50, 900}, 64},
          {"deep_and_transposed", {4, 7, 1000}, 72, true},
          {"many_rows", {500, 24}, 16},
          {"large", {300, 400}, 320}};
}

class PanelMatmul : public ::testing::TestWithParam<ProductCase> {
 protected:
  PanelMatmul() {
    const auto& [name, x, columns, transposed] = GetParam();
    const Shape weight = transposed ? Shape{columns, x.back()} : Shape{x.back(), columns};
    Value* left = graph_.add_input(InputRole::input, "x", {DataType::fp32, to_symbolic(x)});
    Value* right = graph_.add_input(InputRole::parameter, "w", {DataType::fp32, to_symbolic(weight)});
    y_ = ops::matmul(left, right, {.transpose_b = transposed});
  }

  void add_bias() {
    y_ = ops::add(y_, graph_.add_input(InputRole::parameter, "b", {DataType::fp32, {GetParam().columns}}));
  }
  void add_residual() { y_ = ops::add(y_, graph_.add_input(InputRole::input, "r", y_->type())); }

  const Node& node() {
    graph_.add_output("y", y_);
    run_pass(graph_, "fuse_patterns", brings({backend::contraction_pattern("matmul")}));
    EXPECT_EQ(graph_.nodes().size(), 1);
    return *graph_.nodes().front();
  }

  static std::vector<bool> freezable(const Node& node) {
    std::vector<bool> result;
    for (const Value* input : node.inputs()) result.push_back(input->role() == InputRole::parameter);
    return result;
  }

  int64_t terms() const { return GetParam().x.back() + 2; }

  void expect_right() {
    expect_within(chain_tolerance(
        {.name = {}, .kind = {}, .inputs = {}, .shape = {}, .main = {}, .terms = terms()}, DataType::fp32));
  }
  void expect_within(const Tolerance& tolerance) {
    const Node& product = node();
    expect_every_kernel(product, random_inputs(product, -1, 1), {tolerance}, freezable(product));
    EXPECT_EQ(first_willing(product, freezable(product)) == "loops.matmul", cpu::packs_for_each_call());
  }

  Graph graph_;
  Value* y_ = nullptr;
};

TEST_P(PanelMatmul, Alone) {
  expect_right();
}

TEST_P(PanelMatmul, EndsWithBiasAndGelu) {
  add_bias();
  y_ = ops::gelu(y_, /*approximate=*/false);
  expect_right();
}

TEST_P(PanelMatmul, EndsWithGeluOfTanh) {
  y_ = ops::gelu(y_, /*approximate=*/true);
  expect_right();
}

TEST_P(PanelMatmul, EndsWithBiasAndResidual) {
  add_bias();
  add_residual();
  expect_right();
}

TEST_P(PanelMatmul, EndsWithSilu) {
  add_bias();
  y_ = ops::silu(y_);
  expect_right();
}

TEST_P(PanelMatmul, EndsWithHardSwish) {
  y_ = ops::hard_swish(y_);
  expect_right();
}

// Whose slope is a quarter at most: of deep sums fewer digits are left otherwise than a wrong rounding
// spoils.
TEST_P(PanelMatmul, EndsWithSigmoid) {
  add_bias();
  y_ = ops::sigmoid(y_);
  Tolerance tolerance =
      tolerance_for(OperatorClass::contraction, DataType::fp32, {.terms = terms(), .magnitude = 1});
  const Tolerance own = tolerance_for(OperatorClass::fused, DataType::fp32, {.magnitude = 1});
  tolerance.absolute = tolerance.absolute / 4 + own.absolute;
  tolerance.relative = own.relative;
  expect_within(tolerance);
}

INSTANTIATE_TEST_SUITE_P(DeviceCpu, PanelMatmul, ::testing::ValuesIn(cases()),
                         [](const auto& test) { return test.param.name; });

// What is left to oneDNN, whatever the processor.
TEST(PanelMatmuls, TakeFrozenMatricesAlone) {
  const auto refusal = [](const std::string& text, std::vector<bool> frozen) {
    const std::unique_ptr<Graph> graph = parse_graph(text);
    const Node& node = *graph->nodes().front();
    for (const KernelCandidate& candidate : Device::cpu()->candidates(node)) {
      if (candidate.name == "loops.matmul") return candidate.refusal({node, std::move(frozen)});
    }
    return std::string("not offered");
  };
  const std::string head = "graph g(input %x: fp32[2, 8, 16], input %w: ";
  const std::string tail = ") {\n  %y = matmul(%x, %w)\n  output y = %y\n}";
  if (!cpu::packs_for_each_call()) {
    EXPECT_EQ(refusal(head + "fp32[16, 24]" + tail, {false, true}),
              "oneDNN multiplies packed weights itself");
    return;
  }
  EXPECT_EQ(refusal(head + "fp32[16, 24]" + tail, {false, true}), "");
  EXPECT_EQ(refusal(head + "fp32[16, 24]" + tail, {false, false}), "the weight is not frozen");
  EXPECT_EQ(refusal("graph g(input %x: fp32[600, 16], input %w: fp32[16, 24]" + tail, {false, true}),
            "600 rows");
  EXPECT_EQ(refusal(head + "fp32[2, 16, 24]" + tail, {false, true}),
            "not one matrix of weights for all rows");
  EXPECT_EQ(refusal(head + "fp32[16, 20]" + tail, {false, true}), "20 columns are no whole vectors of 8");
}

}  // namespace
}  // namespace tessera::testing
