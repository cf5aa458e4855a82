// Attributes that are lists of numbers and of texts, and numbers that equal nothing but themselves.
#include "tessera/graph/attributes.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "tessera/graph/operator.h"

#include "support/expect_error.h"
#include "support/sample_operators.h"

namespace tessera::testing {
namespace {

class Lists : public ::testing::Test {
 protected:
  Lists() { register_sample_operators(); }

  Node* node(Attributes attributes) {
    return graph_.add_node("sample_lists", {x_}, std::move(attributes), "y");
  }

  Graph graph_;
  Value* x_ = graph_.add_input(InputRole::input, "x", {DataType::fp32, {2}});
};

TEST_F(Lists, AreWrittenInBrackets) {
  const std::string text = R"(graph g(
  input %x: fp32[2]) {
  %y: fp32[2] = sample_lists(%x) {factors = [0.1, -0, inf, 1e-300, nan], labels = ["a", "", "\"b\"\n"]}
  output y = %y
}
)";
  const auto graph = parse_graph(text);
  EXPECT_EQ(print(*graph), text);
  const Attributes& attributes = graph->find("y")->producer()->attributes();
  EXPECT_EQ(attributes.reals("factors")[3], 1e-300);
  EXPECT_TRUE(std::signbit(attributes.reals("factors")[1]));
  EXPECT_EQ(attributes.texts("labels"), (std::vector<std::string>{"a", "", "\"b\"\n"}));
}

TEST_F(Lists, ThatAreTheDefaultAreNotWritten) {
  EXPECT_EQ(print(*node({{"factors", std::vector<double>()}})), "%y: fp32[2] = sample_lists(%x)");
}

TEST_F(Lists, OfIntegersMayStandForReals) {
  const std::vector<double> expected{1, 2};
  EXPECT_EQ(node({{"factors", {1, 2}}})->attributes().reals("factors"), expected);
  EXPECT_ERROR(node({{"labels", {1, 2}}}), ErrorCode::invalid_graph, "'labels' must be texts, got integers");
  EXPECT_ERROR(node({{"factors", 1.5}}), ErrorCode::invalid_graph, "'factors' must be reals, got real");
  EXPECT_ERROR(parse_graph("graph g(input %x: fp32[2]) {\n  %y = sample_lists(%x) {labels = [a]}\n}"),
               ErrorCode::invalid_graph, ":2", "quoted text");
}

TEST(Attribute, ComparesRealsByTheirBits) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(Attribute(nan), Attribute(nan));
  EXPECT_EQ(Attribute(std::vector<double>{nan}), Attribute(std::vector<double>{nan}));
  EXPECT_FALSE(Attribute(0.0) == Attribute(-0.0));
  EXPECT_FALSE(Attribute(std::vector<double>{0.0}) == Attribute(std::vector<double>{-0.0}));
  EXPECT_FALSE(Attribute(std::vector<double>{1.0}) == Attribute(std::vector<double>{1.0, 2.0}));
}

TEST(Attribute, ThatIsNotANumberPassesTheVerifier) {
  const std::string text = R"(graph g(
  input %x: fp32[2]) {
  %y: fp32[2] = leaky_relu(%x) {slope = nan}
  output y = %y
}
)";
  EXPECT_EQ(print(*parse_graph(text)), text);
}

}  // namespace
}  // namespace tessera::testing
