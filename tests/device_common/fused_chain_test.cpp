#include "tessera/device/common/fused_chain.h"

#include "support/expect_error.h"

namespace tessera::backend {
namespace {

// A matrix product in whose fused node `steps` lead from %c to %y.
std::unique_ptr<Graph> chain_of(const std::string& steps) {
  return parse_graph(R"(
    graph g(input %x: fp32[2, 3], input %w: fp32[3, 4], input %b: fp32[4], input %s: fp32[2, 4]) {
      %y = fused(%x, %w, %b, %s) {kind = "matmul"} body graph matmul(
        input %x: fp32[2, 3], input %w: fp32[3, 4], input %b: fp32[4], input %s: fp32[2, 4]) {
        %c = matmul(%x, %w)
        )" + steps + R"(
        output y0 = %y
      }
      output y = %y
    })");
}

Epilogue epilogue_of(const Graph& graph) {
  const Node& node = *graph.nodes().front();
  return read_epilogue(node, parse_chain(node, "matmul"), {"relu"});
}

TEST(Epilogue, IsBiasResidualAndActivation) {
  const auto graph = chain_of("%biased = add(%c, %b) %sum = add(%s, %biased) %y = relu(%sum)");
  const Epilogue epilogue = epilogue_of(*graph);
  EXPECT_EQ(epilogue.bias, 2U);
  EXPECT_EQ(epilogue.residual, 3U);
  ASSERT_NE(epilogue.activation, nullptr);
  EXPECT_EQ(epilogue.activation->operator_name(), "relu");
}

TEST(Epilogue, MayLackAnyOfThem) {
  const auto graph = chain_of("%y = add(%c, %s)");
  const Epilogue epilogue = epilogue_of(*graph);
  EXPECT_FALSE(epilogue.bias.has_value());
  EXPECT_EQ(epilogue.residual, 3U);
  EXPECT_EQ(epilogue.activation, nullptr);
}

TEST(Epilogue, RefusesOtherChainsAndSaysWhy) {
  const auto refused = [](const std::string& steps, const std::string& reason) {
    const auto graph = chain_of(steps);
    EXPECT_ERROR(epilogue_of(*graph), ErrorCode::unsupported, reason);
  };
  refused("%r = relu(%c) %y = add(%r, %s)", "'add' behind the activation");
  refused("%y = tanh(%c)", "'tanh' is neither");
  refused("%sum = add(%c, %s) %y = add(%sum, %b)", "'add' is neither");
  refused("%y = multiply(%c, %s)", "'multiply' is neither");
}

}  // namespace
}  // namespace tessera::backend
