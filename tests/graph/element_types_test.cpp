// Every element type in the text of a graph.
#include <gtest/gtest.h>

#include "tessera/graph/operator.h"

#include "support/expect_error.h"

namespace tessera {
namespace {

// Elements of both signs, fractions and limits: what the type makes of them is printed.
Tensor sample(DataType type) {
  if (is_complex(type)) {
    Tensor tensor(type, {2});
    tensor.parts().set(0, 0.1);
    tensor.parts().set(1, -2);
    return tensor;
  }
  const TypeTraits& traits = traits_of(type);
  return Tensor::from_doubles(type, {5}, std::vector<double>{traits.lowest, traits.highest, 1, -0.7, 0});
}

TEST(ElementTypes, TextReadsBack) {
  for (const DataType type : kAllDataTypes) {
    const Tensor value = sample(type);
    Graph graph("types");
    graph.add_input(InputRole::input, "x", {type, to_symbolic({3})});
    graph.add_input(InputRole::state, "s", {type, to_symbolic(value.shape())}, value);
    Tensor alike(type, {7});
    graph.add_input(InputRole::state, "t", {type, to_symbolic({7})}, alike);
    graph.add_output("y", graph.add_node("constant", {}, {{"value", value}})->output());
    const std::string text = print(graph);
    const std::unique_ptr<Graph> read = parse_graph(text);
    EXPECT_EQ(print(*read), text);
    EXPECT_TRUE(read->nodes().front()->attributes().tensor("value").identical(value)) << text;
    EXPECT_TRUE(read->inputs()[1]->initial()->identical(value)) << text;
    EXPECT_TRUE(read->inputs()[2]->initial()->identical(alike)) << text;
  }
}

TEST(ElementTypes, SpecialNumbersReadBack) {
  const std::string text =
      "graph g() { %c = constant() {value = fp8_e5m2[3] (inf, -inf, nan)} %d = constant() {value = "
      "uint64[1] (18446744073709551615)} %e = constant() {value = complex128[2] (1 -2, inf nan)} output c = "
      "%c "
      "output d = %d output e = %e }";
  const std::unique_ptr<Graph> graph = parse_graph(text);
  const std::string printed = print(*graph);
  EXPECT_NE(printed.find("fp8_e5m2[3] (inf, -inf, nan)"), std::string::npos) << printed;
  EXPECT_NE(printed.find("(18446744073709551615)"), std::string::npos) << printed;
  EXPECT_NE(printed.find("(1 -2, inf nan)"), std::string::npos) << printed;
  EXPECT_ERROR(parse_graph("graph g() { %c = constant() {value = uint64[1] (-1)} output c = %c }"),
               ErrorCode::invalid_graph, "-1");
  EXPECT_ERROR(parse_graph("graph g() { %c = constant() {value = complex64[1] (1)} output c = %c }"),
               ErrorCode::invalid_graph, "number");
}

TEST(ElementTypes, BytesAreCountedFromBits) {
  EXPECT_EQ((TensorType{DataType::int4, to_symbolic({3, 3})}.bytes()), 5);
  EXPECT_EQ((TensorType{DataType::complex128, to_symbolic({3})}.bytes()), 48);
  const std::unique_ptr<Graph> graph =
      parse_graph("graph g(input %x: uint4[100]) { %y = reshape(%x) {shape = [10, 10]} output y = %y }");
  EXPECT_EQ(cost_of(*graph->nodes().front()).bytes, 100);
}

}  // namespace
}  // namespace tessera
