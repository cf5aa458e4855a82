// The roofline of a node, and the arithmetic that it is reckoned in.
#include "tessera/compile/limit.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tessera/graph/graph.h"

namespace tessera {
namespace {

DeviceDescription card() {
  DeviceDescription description;
  description.bytes_per_second = 1e12;
  description.flops_per_second = {{Precision::fp32, 1e13}, {Precision::fp16, 1e14}};
  return description;
}

NodeReport node_with(double flops, double bytes, std::optional<Precision> arithmetic) {
  NodeReport report;
  report.flops = flops;
  report.bytes = bytes;
  report.arithmetic = arithmetic;
  return report;
}

TEST(Limit, IsTheSlowerOfMovingAndComputing) {
  const auto moving = limit_of(node_with(1e9, 1e9, Precision::fp32), card());
  ASSERT_TRUE(moving.has_value());
  EXPECT_DOUBLE_EQ(moving->seconds, 1e-3);
  EXPECT_TRUE(moving->by_memory);
  const auto computing = limit_of(node_with(1e11, 1e9, Precision::fp32), card());
  EXPECT_DOUBLE_EQ(computing->seconds, 1e-2);
  EXPECT_FALSE(computing->by_memory);
  EXPECT_TRUE(limit_of(node_with(1e11, 1e9, Precision::fp16), card())->by_memory);
}

TEST(Limit, IsNotMadeUp) {
  EXPECT_FALSE(limit_of(node_with(1, 1, Precision::fp32), {}).has_value());
  EXPECT_FALSE(limit_of(node_with(1, 1, Precision::tf32), card()).has_value());
  EXPECT_FALSE(limit_of(node_with(1, 1, std::nullopt), card()).has_value());
  EXPECT_TRUE(limit_of(node_with(0, 1, std::nullopt), card()).has_value());  // nothing to compute
}

// By node name, of a compilation that fuses products with what follows them.
std::map<std::string, std::optional<Precision>> arithmetic_in(const char* type, Precision precision) {
  const std::string text = fmt::format(
      "graph g(input %a: {0}[4, 8], input %b: {0}[8, 4]) {{\n  %p: {0}[4, 4] = matmul(%a, %b)\n"
      "  %r: {0}[4, 4] = relu(%p)\n  %e: {0}[4, 8] = exp(%a)\n  output r = %r\n  output e = %e\n}}\n",
      type);
  CompileOptions options;
  options.passes.precision = precision;
  std::map<std::string, std::optional<Precision>> result;
  const auto executable = compile(*parse_graph(text), Device::null(), options);
  for (const NodeReport& node : executable->nodes()) result[node.name] = node.arithmetic;
  return result;
}

TEST(Limit, ProductsCountInTheirOperandsTypeAndAllElseInFp32) {
  const auto half = arithmetic_in("fp16", Precision::fp32);
  EXPECT_EQ(half.at("r"), Precision::fp16);  // the product and the relu are one node
  EXPECT_EQ(half.at("e"), Precision::fp32);
  EXPECT_EQ(arithmetic_in("bf16", Precision::fp32).at("r"), Precision::bf16);
  EXPECT_EQ(arithmetic_in("fp32", Precision::fp32).at("r"), Precision::fp32);
  const auto tf32 = arithmetic_in("fp32", Precision::tf32);
  EXPECT_EQ(tf32.at("r"), Precision::tf32);
  EXPECT_EQ(tf32.at("e"), Precision::fp32);
  EXPECT_EQ(arithmetic_in("fp64", Precision::fp32).at("r"), std::nullopt);
}

}  // namespace
}  // namespace tessera
