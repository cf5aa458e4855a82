#include "passes/run_pass.h"

namespace tessera::testing {
namespace {

const char* const kPass = "recognize_activations";

std::string graph_of(const std::string& lines, const std::string& type = "fp32") {
  return "graph g(input %x: " + type + "[3, 8], input %z: " + type + "[3, 8]) {\n" + lines +
         "\n  output y = %y\n}";
}

// The pass leaves what it replaced to remove_dead_code.
void expect_recognized(const std::string& lines, const std::string& activation) {
  const std::unique_ptr<Graph> before = parse_graph(graph_of(lines));
  const std::unique_ptr<Graph> after = parse_graph(graph_of(lines));
  EXPECT_TRUE(run_pass(*after, kPass));
  verify(*after);
  EXPECT_TRUE(run_pass(*after, "remove_dead_code"));
  ASSERT_EQ(after->nodes().size(), 1) << print(*after);
  EXPECT_EQ(after->nodes().front()->operator_name(), activation);
  EXPECT_EQ(after->nodes().front()->input(0)->name(), "x");
  expect_same_results(*before, *after, kReordered);
}

void expect_kept(const std::string& lines, const std::string& type = "fp32") {
  expect_no_change(kPass, graph_of(lines, type));
}

TEST(RecognizeActivations, Silu) {
  expect_recognized("%s = sigmoid(%x) %y = multiply(%x, %s)", "silu");
  expect_recognized("%s = sigmoid(%x) %y = multiply(%s, %x)", "silu");
}

TEST(RecognizeActivations, HardSwish) {
  expect_recognized("%s = hard_sigmoid(%x) %y = multiply(%x, %s)", "hard_swish");
  const std::string gate =
      "%three = constant() {value = fp32[] (3)} %six = constant() {value = fp32[] (6)} "
      "%sixth = constant() {value = fp32[1] (0.16666667)} %t = add(%x, %three) ";
  for (const char* clipped : {"%g = relu6(%t) ", "%g = clip(%t) {high = 6.0, low = 0.0} "}) {
    for (const char* product :
         {"%p = multiply(%x, %g) %y = divide(%p, %six)", "%p = divide(%g, %six) %y = multiply(%p, %x)",
          "%p = multiply(%g, %sixth) %y = multiply(%x, %p)",
          "%p = multiply(%x, %sixth) %y = multiply(%p, %g)"})
      expect_recognized(gate + clipped + product, "hard_swish");
  }
}

TEST(RecognizeActivations, Gelu) {
  const std::string constants =
      "%one = constant() {value = fp32[] (1)} %half = constant() {value = fp32[] (0.5)} "
      "%root = constant() {value = fp32[] (1.4142135)} %inverse = constant() {value = fp32[] (0.70710677)} ";
  for (const char* argument : {"%a = divide(%x, %root) ", "%a = multiply(%x, %inverse) "}) {
    for (const char* product :
         {"%p = multiply(%x, %half) %y = multiply(%p, %g)", "%p = multiply(%x, %g) %y = multiply(%p, %half)",
          "%p = multiply(%g, %half) %y = multiply(%p, %x)"})
      expect_recognized(constants + argument + "%e = erf(%a) %g = add(%e, %one) " + product, "gelu");
  }
}

TEST(RecognizeActivations, WhatElseReadsAGateStays) {
  expect_kept("%s = sigmoid(%x) %p = multiply(%x, %s) %y = add(%p, %s)");
  expect_kept("%s = sigmoid(%x) %y = multiply(%x, %s) output gate = %s");
}

TEST(RecognizeActivations, OtherProductsStay) {
  expect_kept("%s = sigmoid(%z) %y = multiply(%x, %s)");
  expect_kept("%s = hard_sigmoid(%x) {alpha = 0.2} %y = multiply(%x, %s)");
  expect_kept("%s = sigmoid(%x) %y = divide(%x, %s)");
  const std::string five =
      "%three = constant() {value = fp32[] (3)} %five = constant() {value = fp32[] (5)} ";
  expect_kept(five + "%t = add(%x, %three) %g = relu6(%t) %p = multiply(%x, %g) %y = divide(%p, %five)");
  expect_kept(five + "%t = add(%x, %five) %g = relu6(%t) %y = multiply(%x, %g)");
}

}  // namespace
}  // namespace tessera::testing
