#include "tessera/device/common/moved_view.h"

#include <gtest/gtest.h>

#include "tessera/graph/operator.h"

namespace tessera::testing {
namespace {

using backend::MovedView;

// Each element's place in memory, in the order of the view's elements.
std::vector<int64_t> places_of(const MovedView& view) {
  std::vector<int64_t> places{view.memory.offset};
  for (size_t axis = 0; axis < view.shape.size(); ++axis) {
    std::vector<int64_t> longer;
    for (const int64_t place : places) {
      for (int64_t i = 0; i < view.shape[axis]; ++i) longer.push_back(place + i * view.memory.strides[axis]);
    }
    places = std::move(longer);
  }
  return places;
}

Tensor counted(const TensorType& type) {
  Tensor tensor(type.data_type, type.static_shape());
  for (int64_t i = 0; i < tensor.size(); ++i) tensor.set(i, static_cast<double>(i));
  return tensor;
}

// A graph with one input %x, or several that are moved to one output.
std::unique_ptr<Graph> graph_of(const std::string& inputs, const std::string& body) {
  return parse_graph("graph g(" + inputs + ") {\n" + body + "\n}");
}

// The numbers of the input's elements that the output then holds are the places of the view.
void expect_source(const std::string& type, const std::string& body) {
  const std::unique_ptr<Graph> graph = graph_of("input %x: " + type, body);
  const Value& source = *graph->inputs().front();
  const auto view = backend::view_of_source(*graph->outputs().front().value, source);
  ASSERT_TRUE(view.has_value()) << body;
  const Tensor moved = run_reference(*graph, std::vector{counted(source.type())}).outputs.front();
  EXPECT_EQ(view->shape, moved.shape());
  const std::vector<int64_t> places = places_of(*view);
  for (int64_t i = 0; i < moved.size(); ++i)
    ASSERT_EQ(static_cast<double>(places[static_cast<size_t>(i)]), moved.at(i)) << body << ", element " << i;
}

void expect_copy(const std::string& type, const std::string& body) {
  const std::unique_ptr<Graph> graph = graph_of("input %x: " + type, body);
  EXPECT_FALSE(backend::view_of_source(*graph->outputs().front().value, *graph->inputs().front()).has_value())
      << body;
}

TEST(MovedView, OfWhatATensorIsMadeOf) {
  expect_source("fp32[2, 3, 4]", "%y = transpose(%x) {permutation = [2, 0, 1]}\noutput y = %y");
  expect_source("fp32[2, 12, 5]", R"(
    %r = reshape(%x) {shape = [2, 3, 4, 5]}
    %y = transpose(%r) {permutation = [0, 2, 1, 3]}
    output y = %y)");
  // Heads of keys beside those of queries and values.
  expect_source("fp32[2, 5, 24]", R"(
    %r = reshape(%x) {shape = [2, 5, 3, 2, 4]}
    %t = transpose(%r) {permutation = [2, 0, 3, 1, 4]}
    %a, %b, %c = split(%t) {axis = 0, sizes = [1, 1, 1]}
    %y = reshape(%b) {shape = [2, 2, 5, 4]}
    output y = %y)");
  expect_source("fp32[4, 9]", R"(
    %a, %b = split(%x) {axis = -1, sizes = [3, 6]}
    %y = reshape(%b) {shape = [2, 2, 1, 3, 2]}
    output y = %y)");
  expect_source("fp32[1, 6, 1]", "%y = reshape(%x) {shape = [3, 1, 2, 1]}\noutput y = %y");
  expect_source("fp32[]", "%y = reshape(%x) {shape = [1, 1]}\noutput y = %y");
}

TEST(MovedView, IsNoneWhereElementsMustMove) {
  expect_copy("fp32[2, 3]", R"(
    %t = transpose(%x) {permutation = [1, 0]}
    %y = reshape(%t) {shape = [6]}
    output y = %y)");
  expect_copy("fp32[4, 6]", R"(
    %a, %b = split(%x) {axis = 1, sizes = [4, 2]}
    %y = reshape(%a) {shape = [16]}
    output y = %y)");
  expect_copy("fp32[2, 3]", "%y = negate(%x)\noutput y = %y");
  expect_copy("fp32[0, 3]", "%y = transpose(%x) {permutation = [1, 0]}\noutput y = %y");
}

// Each operand holds the numbers of the elements of the output that it becomes.
void expect_end(const std::string& inputs, const std::string& body) {
  const std::unique_ptr<Graph> graph = graph_of(inputs, body);
  const Value& end = *graph->outputs().front().value;
  std::vector<Tensor> tensors;
  for (const auto& input : graph->inputs()) {
    const auto view = backend::view_of_end(*input, end);
    ASSERT_TRUE(view.has_value()) << body;
    EXPECT_EQ(view->shape, input->type().static_shape());
    const std::vector<int64_t> places = places_of(*view);
    Tensor& tensor = tensors.emplace_back(input->data_type(), view->shape);
    for (int64_t i = 0; i < tensor.size(); ++i)
      tensor.set(i, static_cast<double>(places[static_cast<size_t>(i)]));
  }
  const Tensor moved = run_reference(*graph, tensors).outputs.front();
  EXPECT_TRUE(moved.identical(counted(end.type()))) << body;
}

TEST(MovedView, OfWhatATensorBecomes) {
  expect_end("input %x: fp32[2, 3, 4]", "%y = transpose(%x) {permutation = [2, 0, 1]}\noutput y = %y");
  expect_end("input %a: fp32[2, 2, 5, 4], input %b: fp32[2, 2, 5, 4], input %c: fp32[2, 2, 5, 4]", R"(
    %ra = reshape(%a) {shape = [1, 2, 2, 5, 4]}
    %rb = reshape(%b) {shape = [1, 2, 2, 5, 4]}
    %rc = reshape(%c) {shape = [1, 2, 2, 5, 4]}
    %j = concat(%ra, %rb, %rc) {axis = 0}
    %t = transpose(%j) {permutation = [1, 3, 0, 2, 4]}
    %y = reshape(%t) {shape = [2, 5, 24]}
    output y = %y)");
  expect_end("input %a: fp32[3, 2], input %b: fp32[3, 4]", "%y = concat(%a, %b) {axis = -1}\noutput y = %y");
}

TEST(MovedView, OfAnEndIsNoneWhereOthersReadOnTheWay) {
  const std::unique_ptr<Graph> graph = graph_of("input %x: fp32[2, 3]", R"(
    %t = transpose(%x) {permutation = [1, 0]}
    %y = reshape(%t) {shape = [6]}
    output y = %y
    output t = %t)");
  EXPECT_FALSE(backend::view_of_end(*graph->inputs().front(), *graph->outputs().front().value).has_value());
}

TEST(MovedView, TellsWhereRowsBegin) {
  const auto aligned = [](const Shape& shape, int64_t offset, const std::vector<int64_t>& strides) {
    return backend::has_aligned_rows({shape, {offset, strides}}, DataType::fp16, 16);
  };
  EXPECT_TRUE(aligned({2, 3, 8}, 0, {24, 8, 1}));
  EXPECT_TRUE(aligned({2, 3, 8}, 16, {8, 64, 1}));
  EXPECT_TRUE(aligned({1, 3, 8}, 0, {3, 8, 1}));  // nobody goes along an axis of extent 1
  EXPECT_FALSE(aligned({2, 3, 8}, 4, {24, 8, 1}));
  EXPECT_FALSE(aligned({2, 3, 8}, 0, {24, 12, 1}));
  EXPECT_FALSE(aligned({2, 3, 8}, 0, {1, 16, 2}));
}

}  // namespace
}  // namespace tessera::testing
