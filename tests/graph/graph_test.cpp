// Building, rewriting, text form, specialization and verification of graphs.
#include "tessera/graph/graph.h"

#include <gtest/gtest.h>

#include "tessera/graph/operator.h"
#include "tessera/ops/functions.h"

#include "support/comma_locale.h"
#include "support/expect_error.h"

namespace tessera {
namespace {

constexpr const char* kPerceptron = R"(graph perceptron(
  input %images: fp32[batch, 784],
  parameter %fc.weight: fp32[10, 784],
  state %counter: int64[2]) {
  %fc: fp32[batch, 10] = matmul(%images, %fc.weight) {transpose_b = true}
  %constant: int64[2] = constant() {value = int64[2] (0, 1)}
  %add: int64[2] = add(%counter, %constant)
  output logits = %fc
  update %counter = %add
}
)";

TEST(GraphText, PrintsWhatItParsed) {
  EXPECT_EQ(print(*parse_graph(kPerceptron)), kPerceptron);
}

TEST(GraphText, KeepsNumbersToTheLastBit) {
  const std::string text = R"(graph numbers() {
  %a: fp32[4] = constant() {value = fp32[4] (0.1, -0, 1e-45, 3.4028235e+38)}
  %b: fp64[3] = constant() {value = fp64[3] (inf, -inf, 0.1)}
  output a = %a
  output b = %b
}
)";
  const auto graph = parse_graph(text);
  const auto again = parse_graph(print(*graph));
  for (const char* name : {"a", "b"}) {
    EXPECT_TRUE(graph->find(name)->producer()->attributes().tensor("value").identical(
        again->find(name)->producer()->attributes().tensor("value")));
  }
}

TEST(GraphText, PrintsBodiesInside) {
  const std::string text = R"(graph outer(
  input %x: fp32[4]) {
  %y: fp32[4] = fused(%x) {kind = "cluster"} body graph inner(
    input %a: fp32[4]) {
    %b: fp32[4] = exp(%a)
    output y = %b
  }
  output y = %y
}
)";
  EXPECT_EQ(print(*parse_graph(text)), text);
}

TEST(GraphText, MeansTheSameInEveryLocale) {
  const std::string text = R"(graph g(
  input %x: fp32[2]) {
  %y: fp32[2] = leaky_relu(%x) {slope = 0.25}
  output y = %y
}
)";
  const testing::CommaLocale locale;
  EXPECT_EQ(print(*parse_graph(text)), text);
}

struct BadText {
  const char* text;
  const char* line;
  const char* word;
};

TEST(GraphText, SaysWhereAndWhatIsWrong) {
  const BadText cases[] = {
      {"", ":1", "graph"},
      {"graph g() {\n  %y = ex()\n}", ":2", "did you mean 'exp'"},
      {"graph g(input %x: fp32[2]) {\n  %y = exp(%z)\n}", ":2", "%z"},
      {"graph g(input %x: fp32[2]) {\n\n  %y: fp32[3] = exp(%x)\n}", ":4", "fp32[2]"},
      {"graph g(input %x: fp32[2]) {\n  %x = exp(%x)\n}", ":2", "twice"},
      {"graph g(input %x: fp99[2]) {\n}", ":1", "fp99"},
      {"graph g(input %x: fp32[-2]) {\n}", ":1", "negative"},
      {"graph g(input %x: fp32[2]) {\n  update %x = %x\n}", ":3", "no parameter or state"},
      {"graph g(input %x: fp32[2]) {\n  %y = matmul(%x, %x)\n}", ":3", "matmul"},
      {"graph g(input %x: fp32[2]) {\n  output y = %x\n} extra", ":3", "extra"},
      {"graph g() {\n  %c = constant() {value = fp32[99999999999] (1)}\n}", ":2", "too large"},
      {"graph g() {\n  %c = constant() {value = fp32[9999999] (1)}\n}", ":2", "9999999 elements"},
      {"graph g(input %x: fp32[2]) {\n  output y = %x\n  output y = %x\n}", ":3",
       "output 'y' is given twice"},
      {"graph g(state %s: fp32[2]) {\n  update %s = %s\n  update %s = %s\n}", ":4", "updated twice"},
      {"graph g(input %x: fp32[2147483648, 2147483648]) {\n}", ":1", "128.0 TiB"},
      {"graph g(input %x: fp32[0, 2147483648, 2147483648]) {\n}", ":1", "128.0 TiB"},
  };
  for (const BadText& bad : cases) {
    EXPECT_ERROR(parse_graph(bad.text, "file"), ErrorCode::invalid_graph, "file", bad.word);
  }
}

TEST(Graph, SpecializesAllSizesThatDependOnASymbol) {
  const auto symbolic = parse_graph(R"(graph g(input %x: fp32[batch, 6]) {
  %y: fp32[2*batch, 3] = reshape(%x) {shape = [2*batch, 3]}
  output y = %y
})");
  EXPECT_EQ(free_symbols(*symbolic), std::set<std::string>{"batch"});
  const auto graph = specialize(*symbolic, {{"batch", 4}});
  verify(*graph);
  EXPECT_EQ(graph->find("y")->type().static_shape(), (Shape{8, 3}));
  EXPECT_TRUE(free_symbols(*graph).empty());
}

TEST(Graph, NamesNodeShapesAndRule) {
  Graph graph;
  Value* a = graph.add_input(InputRole::input, "a", {DataType::fp32, {2, 3}});
  Value* b = graph.add_input(InputRole::input, "b", {DataType::fp32, {4, 5}});
  EXPECT_ERROR(ops::apply("matmul", {a, b}, {}, "layer"), ErrorCode::invalid_graph, "layer", "fp32[2, 3]",
               "fp32[4, 5]");
  EXPECT_ERROR(ops::apply("add", {a, b}), ErrorCode::invalid_graph, "broadcast");
  EXPECT_ERROR(ops::apply("add", {a}), ErrorCode::invalid_graph, "inputs");
  EXPECT_ERROR(ops::apply("softmax", {a}, {{"axes", 1}}), ErrorCode::invalid_graph, "did you mean 'axis'");
  EXPECT_ERROR(graph.add_input(InputRole::input, "a", {}), ErrorCode::invalid_graph, "already");
}

TEST(Graph, ReplacesReadersOutputsAndUpdates) {
  Graph graph;
  Value* state = graph.add_input(InputRole::state, "s", {DataType::fp32, {2}});
  Value* first = ops::exp(state);
  Value* reader = ops::log(first);
  Value* second = ops::square(state);
  graph.add_output("y", first);
  graph.add_update(state, first);
  graph.replace_all_uses(first, second);
  EXPECT_EQ(reader->producer()->input(0), second);
  EXPECT_EQ(graph.outputs()[0].value, second);
  EXPECT_EQ(graph.updates()[0].next, second);
  EXPECT_ERROR(graph.erase(second->producer()), ErrorCode::internal, "still read");
  graph.erase(first->producer());
  // The reader stands before its new input now.
  EXPECT_ERROR(verify(graph), ErrorCode::invalid_graph, "before it is made");
  graph.sort();
  verify(graph);
}

TEST(Graph, RefusesASecondUpdateOfOneState) {
  Graph graph;
  Value* state = graph.add_input(InputRole::state, "s", {DataType::fp32, {}});
  graph.add_update(state, ops::add(state, 1.0));
  EXPECT_ERROR(graph.add_update(state, ops::add(state, 10.0)), ErrorCode::invalid_graph,
               "'s' is updated twice");
  EXPECT_EQ(graph.updates().size(), 1u);
}

TEST(Graph, RefusesTensorsThatNoMachineHolds) {
  Graph graph;
  const Dimension large(int64_t{1} << 24);
  const Dimension batch = Dimension::symbol("batch");
  EXPECT_ERROR(graph.add_input(InputRole::input, "a", {DataType::fp32, {large, large}}),
               ErrorCode::invalid_graph, "[16777216, 16777216]", "128.0 TiB");
  EXPECT_ERROR(graph.add_input(InputRole::input, "a", {DataType::fp32, SymbolicShape(65, 1)}),
               ErrorCode::invalid_graph, "65 axes");
  EXPECT_EQ(graph.find("a"), nullptr);
  Value* x = graph.add_input(InputRole::input, "x", {DataType::fp32, {batch, large}});
  graph.add_output("y", ops::relu(x));
  EXPECT_NO_THROW(specialize(graph, {{"batch", 1 << 20}}));
  EXPECT_ERROR(specialize(graph, {{"batch", 1 << 24}}), ErrorCode::invalid_graph, "128.0 TiB");
  EXPECT_ERROR(specialize(graph, {{"batch", -1}}), ErrorCode::invalid_graph, "negative");
}

std::vector<const Node*> order_of(const Graph& graph) {
  std::vector<const Node*> order;
  for (const auto& node : graph.nodes()) order.push_back(node.get());
  return order;
}

// A node that only waits for the ones around it would come to the front if all that could run were put there.
TEST(Graph, SortingMovesOnlyWhatAnEarlierNodeReads) {
  Graph graph;
  Value* x = graph.add_input(InputRole::input, "x", {DataType::fp32, {2}});
  Value* first = ops::exp(x);
  Value* reader = ops::log(first);
  Value* alone = ops::sqrt(x);
  Value* base = ops::square(x);
  Value* second = ops::negate(base);
  graph.add_output("y", ops::add(reader, alone));
  graph.replace_all_uses(first, second);
  graph.sort();
  verify(graph);
  EXPECT_EQ(order_of(graph), (std::vector<const Node*>{
                                 first->producer(), base->producer(), second->producer(), reader->producer(),
                                 alone->producer(), graph.outputs()[0].value->producer()}));
  graph.set_input(base->producer(), 0, reader);
  EXPECT_ERROR(graph.sort(), ErrorCode::internal, "cycle");
  EXPECT_EQ(graph.nodes().size(), 6u);
}

void expect_order_is_known(const Graph& graph) {
  const std::vector<const Node*> order = order_of(graph);
  for (size_t i = 0; i < order.size(); ++i) {
    for (size_t j = 0; j < order.size(); ++j)
      EXPECT_EQ(order[i]->stands_before(*order[j]), i < j) << order[i]->name() << " " << order[j]->name();
  }
}

TEST(Graph, KnowsWhichOfTwoNodesStandsFirst) {
  Graph graph;
  Value* x = graph.add_input(InputRole::input, "x", {DataType::fp32, {2}});
  Value* first = ops::exp(x);
  Value* last = ops::log(x);
  {
    const InsertionPoint here(graph, last->producer());
    for (int i = 0; i < 70; ++i) ops::sqrt(x);  // more than fit between two labels
  }
  {
    const InsertionPoint here(graph, first->producer());
    for (int i = 0; i < 3; ++i) ops::square(x);
  }
  expect_order_is_known(graph);
  graph.erase(std::next(graph.nodes().begin(), 20)->get());
  graph.set_input(first->producer(), 0, ops::negate(x));
  graph.sort();
  verify(graph);
  expect_order_is_known(graph);
}

TEST(Graph, SortsAPartAsIfItSortedAll) {
  const auto build = [] {
    auto graph = std::make_unique<Graph>();
    Value* x = graph->add_input(InputRole::input, "x", {DataType::fp32, {2}});
    Value* early = ops::exp(x);
    Value* reader = ops::log(early);
    Value* alone = ops::sqrt(x);
    Value* second = ops::negate(ops::square(x));
    graph->add_output("y", ops::add(reader, alone));
    graph->set_input(reader->producer(), 0, second);
    graph->add_output("early", early);
    return graph;
  };
  const auto whole = build();
  whole->sort();
  const auto part = build();
  part->sort(part->find("log")->producer(), part->find("negate")->producer());
  EXPECT_EQ(print(*part), print(*whole));
  verify(*part);
  expect_order_is_known(*part);
}

TEST(Graph, KnowsWhatTheEndOfARunReads) {
  Graph graph;
  Value* state = graph.add_input(InputRole::state, "s", {DataType::fp32, {2}});
  Value* y = ops::exp(state);
  Value* next = ops::log(state);
  EXPECT_FALSE(y->is_output_or_update());
  graph.add_output("y", y);
  graph.add_output("z", y);
  graph.add_update(state, next);
  EXPECT_TRUE(y->is_output_or_update());
  EXPECT_TRUE(next->is_output_or_update());
  EXPECT_FALSE(state->is_output_or_update());
  graph.set_output(0, next);
  EXPECT_TRUE(y->is_output_or_update()) << "the other output";
  graph.set_output(1, next);
  EXPECT_FALSE(y->is_output_or_update());
  EXPECT_FALSE(graph.is_used(y));
  graph.replace_all_uses(next, y);
  EXPECT_FALSE(graph.is_used(next));
  EXPECT_EQ(graph.outputs()[1].value, y);
  EXPECT_EQ(graph.updates()[0].next, y);
  graph.set_update(0, next);
  graph.erase_outputs();
  EXPECT_FALSE(graph.is_used(y));
  graph.erase(y->producer());
  EXPECT_TRUE(graph.is_used(state));
}

TEST(Graph, SortingKeepsTheInsertionPoint) {
  Graph graph;
  Value* x = graph.add_input(InputRole::input, "x", {DataType::fp32, {2}});
  Value* last = ops::exp(x);
  graph.add_output("y", last);
  const InsertionPoint here(graph, last->producer());
  graph.sort();
  const Value* own = ops::log(x);
  EXPECT_EQ(graph.nodes().front().get(), own->producer());
}

TEST(Graph, ClonesAreEqualAndIndependent) {
  const auto graph = parse_graph(kPerceptron);
  const auto copy = graph->clone();
  EXPECT_EQ(print(*copy), kPerceptron);
  copy->rename(copy->find("fc"), "renamed");
  EXPECT_EQ(print(*graph), kPerceptron);
}

TEST(Interpreter, RunsGraphsAndChecksInputs) {
  const auto graph = parse_graph("graph g(input %x: fp32[2]) {\n  %y = square(%x)\n  output y = %y\n}");
  const Tensor x = Tensor::from<float>({2}, {3.0F, -2.0F});
  EXPECT_EQ(run_reference(*graph, std::vector<Tensor>{x}).outputs[0].to_doubles(),
            (std::vector<double>{9, 4}));
  const std::vector<Tensor> wrong{Tensor(DataType::fp32, {3})};
  EXPECT_ERROR(run_reference(*graph, wrong), ErrorCode::invalid_argument, "'x'", "fp32[2]");
}

}  // namespace
}  // namespace tessera
