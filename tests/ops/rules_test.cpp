// What the derived tests and the golden values do not reach: ties, NaN, symbols, refusals, rounding.
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "tessera/graph/operator.h"
#include "tessera/ops/functions.h"
#include "tessera/passes/differentiate.h"

#include "support/compare.h"
#include "support/expect_error.h"

namespace tessera::testing {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// A graph whose inputs are `in(...)` and that runs at once.
struct Bench {
  Graph graph;
  std::vector<Tensor> tensors;

  Value* in(const Tensor& tensor) {
    tensors.push_back(tensor);
    return in(tensor.data_type(), to_symbolic(tensor.shape()));
  }
  Value* in(DataType type, SymbolicShape shape) {
    const std::string name = "input" + std::to_string(graph.inputs().size());
    return graph.add_input(InputRole::input, name, {type, std::move(shape)});
  }
  Value* in(SymbolicShape shape) { return in(DataType::fp32, std::move(shape)); }
  std::vector<double> run(Value* value) {
    graph.erase_outputs();
    graph.add_output("y", value);
    return run_reference(graph, tensors).outputs[0].to_doubles();
  }
};

Tensor fp32(Shape shape, const std::vector<double>& values) {
  return Tensor::from_doubles(DataType::fp32, std::move(shape), values);
}

Dimension batch() {
  return Dimension::symbol("batch");
}

TEST(Reductions, PropagateNaNAndTakeTheFirstOfEquals) {
  Bench bench;
  Value* x = bench.in(fp32({3, 3}, {1, 4, 4, kNaN, 2, kNaN, -1, -3, -3}));
  EXPECT_EQ(bench.run(ops::argmax(x)), (std::vector<double>{1, 0, 0}));
  const std::vector<double> largest = bench.run(ops::reduce_max(x, {.axes = {1}}));
  EXPECT_EQ(largest[0], 4);
  EXPECT_TRUE(std::isnan(largest[1]));
  EXPECT_TRUE(std::isnan(bench.run(ops::reduce_min(x, {.axes = {1}}))[1]));
}

TEST(Reductions, SumSixteenBitTypesWithoutLosingSmallTerms) {
  for (const DataType type : {DataType::fp16, DataType::bf16}) {
    Bench bench;
    Value* x = bench.in(Tensor::full(type, {4096}, 1));
    EXPECT_EQ(bench.run(ops::reduce_sum(x)), std::vector<double>{4096}) << to_string(type);
    EXPECT_EQ(bench.run(ops::reduce_mean(x)), std::vector<double>{1}) << to_string(type);
  }
}

TEST(Reductions, RunningSumsKeepElementsOutOfTheirOwnAndStartFromEitherEnd) {
  Bench bench;
  Value* x = bench.in(fp32({2, 3}, {1, 2, 3, 10, 20, 30}));
  EXPECT_EQ(bench.run(ops::cumulative_sum(x)), (std::vector<double>{1, 3, 6, 10, 30, 60}));
  EXPECT_EQ(bench.run(ops::cumulative_sum(x, {.exclusive = true})),
            (std::vector<double>{0, 1, 3, 0, 10, 30}));
  EXPECT_EQ(bench.run(ops::cumulative_sum(x, {.reverse = true})), (std::vector<double>{6, 5, 3, 60, 50, 30}));
  EXPECT_EQ(bench.run(ops::cumulative_sum(x, {.axis = 0, .exclusive = true, .reverse = true})),
            (std::vector<double>{10, 20, 30, 0, 0, 0}));
}

TEST(Reductions, RunningSumsSaturateWhereTheTypeEndsAndComeBack) {
  Bench bench;
  Value* x = bench.in(Tensor::from_doubles(DataType::int8, {4}, std::vector<double>{100, 100, -120, 1}));
  EXPECT_EQ(bench.run(ops::cumulative_sum(x)), (std::vector<double>{100, 127, 80, 81}));
}

TEST(Reductions, RunningSumsStayNotANumberAfterOne) {
  Bench bench;
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  Value* x = bench.in(fp32({4}, {1, kInfinity, -kInfinity, 2}));
  const std::vector<double> sums = bench.run(ops::cumulative_sum(x));
  EXPECT_EQ(sums[1], kInfinity);
  EXPECT_TRUE(std::isnan(sums[2]));
  EXPECT_TRUE(std::isnan(sums[3]));
}

TEST(Reductions, OfNothing) {
  Bench bench;
  Value* x = bench.in(fp32({2, 0}, {}));
  EXPECT_EQ(bench.run(ops::reduce_sum(x, {.axes = {1}})), (std::vector<double>{0, 0}));
  EXPECT_EQ(bench.run(ops::reduce_product(x, {.axes = {1}})), (std::vector<double>{1, 1}));
  EXPECT_TRUE(std::isnan(bench.run(ops::reduce_mean(x))[0]));
  EXPECT_ERROR(ops::argmax(x), ErrorCode::invalid_graph, "argmax", "no largest of no elements");
}

TEST(Reductions, RefuseWrongAxes) {
  Bench bench;
  Value* x = bench.in({2, 3});
  EXPECT_ERROR(ops::reduce_sum(x, {.axes = {2}}), ErrorCode::invalid_graph, "reduce_sum", "fp32[2, 3]",
               "axis 2 is out of range for rank 2");
  EXPECT_ERROR(ops::reduce_max(x, {.axes = {1, -1}}), ErrorCode::invalid_graph, "[1, -1] name an axis twice");
  EXPECT_ERROR(ops::softmax(x, -3), ErrorCode::invalid_graph, "axis -3 is out of range");
  EXPECT_ERROR(ops::reduce_mean(bench.in(DataType::int32, {3})), ErrorCode::invalid_graph,
               "may not be int32");
}

// The batch's size is unknown while the gradient of a mean over it is made.
TEST(Reductions, DifferentiateAMeanOverASymbolicBatch) {
  Graph graph;
  Value* x = graph.add_input(InputRole::input, "x", {DataType::fp32, {batch(), 2}});
  Value* loss = ops::reduce_mean(ops::square(x));
  Value* sources[] = {x};
  graph.add_output("dx", differentiate(graph, loss, sources)[0]);
  verify(graph);
  const auto two = specialize(graph, {{"batch", 2}});
  const Tensor inputs[] = {fp32({2, 2}, {1, 2, 3, 4})};
  EXPECT_EQ(run_reference(*two, inputs).outputs[0].to_doubles(), (std::vector<double>{0.5, 1, 1.5, 2}));
}

TEST(Matmul, KeepsSymbolsAndRefusesWrongShapes) {
  Bench bench;
  Value* x = bench.in({batch(), Dimension::symbol("tokens"), 8});
  Value* weight = bench.in({16, 8});
  EXPECT_EQ(ops::matmul(x, weight, {.transpose_b = true})->shape(),
            (SymbolicShape{batch(), Dimension::symbol("tokens"), 16}));
  EXPECT_ERROR(ops::matmul(x, weight), ErrorCode::invalid_graph, "matmul", "inner extents differ",
               "8 columns of a", "16 rows of b");
  EXPECT_ERROR(ops::matmul(bench.in({8}), weight), ErrorCode::invalid_graph, "at least two axes");
  Value* bytes = ops::cast(weight, DataType::int8);
  EXPECT_EQ(ops::matmul(ops::cast(weight, DataType::uint8), bytes, {.transpose_b = true})->data_type(),
            DataType::int32);
  EXPECT_ERROR(ops::matmul(weight, bytes, {.transpose_b = true}), ErrorCode::invalid_graph,
               "'b' is int8 where the inputs before it are fp32");
  EXPECT_ERROR(ops::matmul(bench.in({2, 3, 4}), bench.in({3, 4, 5})), ErrorCode::invalid_graph,
               "do not broadcast");
}

TEST(Convolution, KeepsASymbolicBatchAndImage) {
  Bench bench;
  Value* x = bench.in({batch(), Dimension::symbol("height"), 224, 3});
  Value* weight = bench.in({64, 7, 7, 3});
  Value* y = ops::convolution(x, weight, {.strides = {2, 2}, .padding_low = {3, 3}});
  EXPECT_EQ(to_string(y->shape()), "[batch, floor(height + 1, 2), 112, 64]");
  Value* back = ops::transposed_convolution(y, weight, {.strides = {2, 2}, .padding_low = {3, 3}}, {1, 1});
  EXPECT_EQ(back->shape()[2], Dimension(224));
  const auto sized = specialize(bench.graph, {{"batch", 2}, {"height", 31}});
  EXPECT_EQ(sized->find(y->name())->shape(), to_symbolic({2, 16, 112, 64}));
}

TEST(Convolution, SumsBytesInInt32) {
  Bench bench;
  // What neither 16 bits nor fp32 hold: 300 products of the largest numbers, and a bias.
  Value* x = bench.in(Tensor::from_doubles(DataType::uint8, {1, 1, 300}, std::vector<double>(300, 255)));
  Value* weight = bench.in(Tensor::from_doubles(DataType::int8, {1, 1, 300}, std::vector<double>(300, -128)));
  Value* bias = bench.in(Tensor::from<int32_t>({1}, {-(1 << 24) - 1}));
  Value* plain = ops::convolution(x, weight);
  EXPECT_EQ(plain->data_type(), DataType::int32);
  Value* y = ops::apply("convolution", {x, weight, bias}, plain->producer()->attributes())->output();
  EXPECT_EQ(bench.run(y), std::vector<double>{-300 * 255 * 128 - (1 << 24) - 1});

  Value* wide = bench.in({1, 1, 300});
  EXPECT_ERROR(ops::convolution(wide, weight), ErrorCode::invalid_graph,
               "'weight' is int8 where the inputs before it are fp32");
  EXPECT_ERROR(ops::apply("convolution", {x, weight, bench.in({1})}, plain->producer()->attributes()),
               ErrorCode::invalid_graph, "'bias' is fp32 where the sums are int32");
  EXPECT_ERROR(ops::convolution_data_gradient(y, weight, x->shape()), ErrorCode::invalid_graph,
               "may not be int32");
}

TEST(Convolution, RefusesWrongShapes) {
  Bench bench;
  Value* x = bench.in({2, 5, 5, 4});
  EXPECT_ERROR(ops::convolution(x, bench.in({8, 3, 3, 3})), ErrorCode::invalid_graph, "convolution",
               "x has 4 channels", "need 3");
  EXPECT_ERROR(ops::convolution(x, bench.in({8, 3, 4})), ErrorCode::invalid_graph,
               "as many spatial axes as x");
  EXPECT_ERROR(ops::convolution(x, bench.in({3, 3, 3, 2}), {.groups = 2}), ErrorCode::invalid_graph,
               "3 output channels cannot be divided into 2 groups");
  EXPECT_ERROR(ops::convolution(x, bench.in({8, 7, 7, 4})), ErrorCode::invalid_graph,
               "reaches over 7 elements", "padded extent 5 of spatial axis 0");
  EXPECT_ERROR(ops::convolution(x, bench.in({8, 3, 3, 4}), {.strides = {1}}), ErrorCode::invalid_graph,
               "strides must have one number for each of the 2 spatial axes");
  EXPECT_ERROR(ops::convolution(x, bench.in({8, 3, 3, 4}), {.dilations = {0, 1}}), ErrorCode::invalid_graph,
               "dilations must be at least 1");
  EXPECT_ERROR(ops::convolution_data_gradient(x, bench.in({4, 3, 3, 8}), {2, 5, 5, 8}),
               ErrorCode::invalid_graph, "[2, 3, 3, 4]", "output_gradient must be");
  EXPECT_ERROR(ops::transposed_convolution(x, bench.in({4, 3, 3, 8}), {.strides = {2, 2}}, {2, 0}),
               ErrorCode::invalid_graph, "less than the stride");
}

TEST(Normalization, KeepsStatisticsInFp32) {
  Bench bench;
  Value* x = bench.in(DataType::bf16, {batch(), 4, 4, 8});
  Value* channel = bench.in({8});
  const ops::BatchNorm norm = ops::batch_norm_training(x, channel, channel);
  EXPECT_EQ(norm.result->type(), x->type());
  EXPECT_EQ(norm.mean->data_type(), DataType::fp32);
  EXPECT_ERROR(ops::batch_norm_training(x, bench.in(DataType::fp64, {8}), bench.in(DataType::fp64, {8})),
               ErrorCode::invalid_graph, "batch_norm_training", "must be fp32");
  EXPECT_ERROR(ops::layer_norm(x, channel, channel, 2), ErrorCode::invalid_graph, "scale must be [4, 8]");
  EXPECT_ERROR(ops::group_norm(x, channel, channel, 3), ErrorCode::invalid_graph,
               "8 channels cannot be divided into 3 groups");
}

TEST(Attention, KeepsTheLogSumInFp32AndRefusesWhatDoesNotBelongTogether) {
  Bench bench;
  Value* q = bench.in(DataType::fp16, {batch(), 4, 10, 8});
  Value* k = bench.in(DataType::fp16, {batch(), 4, 12, 8});
  Value* v = bench.in(DataType::fp16, {batch(), 4, 12, 16});
  const ops::Attention attention = ops::attention(q, k, v);
  EXPECT_EQ(attention.y->type(), (TensorType{DataType::fp16, {batch(), 4, 10, 16}}));
  EXPECT_EQ(attention.log_sum->type(), (TensorType{DataType::fp32, {batch(), 4, 10}}));
  EXPECT_DOUBLE_EQ(attention.y->producer()->attributes().real("scale"), 1 / std::sqrt(8.0));
  const auto in = [&](Shape shape) { return bench.in(DataType::fp16, to_symbolic(shape)); };
  EXPECT_ERROR(ops::attention(q, bench.in(DataType::fp16, {batch(), 2, 12, 8}), v), ErrorCode::invalid_graph,
               "must agree in batch and heads");
  const auto keys = [&](const Dimension& batches, int64_t heads) {
    return bench.in(DataType::fp16, {batches, heads, 12, 8});
  };
  EXPECT_EQ(ops::attention(q, keys(batch(), 2), keys(batch(), 2)).y->type(), q->type());
  EXPECT_ERROR(ops::attention(q, keys(batch(), 3), keys(batch(), 3)), ErrorCode::invalid_graph,
               "4 heads of q are no multiple of 3 heads of k");
  EXPECT_ERROR(ops::attention(q, keys(batch(), 0), keys(batch(), 0)), ErrorCode::invalid_graph,
               "4 heads of q are no multiple of 0 heads of k");
  EXPECT_ERROR(ops::attention(q, keys(1, 4), keys(1, 4)), ErrorCode::invalid_graph,
               "q has a batch of batch, k of 1");
  EXPECT_ERROR(ops::attention(q, v, v), ErrorCode::invalid_graph, "queries are 8 wide, keys 16");
  EXPECT_ERROR(ops::attention(q, k, q), ErrorCode::invalid_graph, "12 keys have 10 values");
  EXPECT_ERROR(ops::attention(q, k, v, {.bias = in({1, 4, 10, 1})}), ErrorCode::invalid_graph,
               "a number for each query and key");
  EXPECT_ERROR(ops::attention(q, k, v, {.bias = in({1, 2, 10, 12})}), ErrorCode::invalid_graph,
               "batch and heads, or 1");
  EXPECT_ERROR(ops::attention_gradient(attention.y, q, k, v, attention.y, bench.in({3, 4, 10})),
               ErrorCode::invalid_graph, "log_sum must be");
}

TEST(Attention, IsSafeFromOverflowAndHidesByMinusInfinity) {
  Bench bench;
  Value* q = bench.in(fp32({1, 1, 2, 1}, {1000, -1000}));
  Value* k = bench.in(fp32({1, 1, 3, 1}, {1000, 999, -1000}));
  Value* v = bench.in(fp32({1, 1, 3, 1}, {5, 6, 7}));
  Value* bias = bench.in(fp32({1, 1, 2, 3}, {-std::numeric_limits<double>::infinity(), 0, 0, 0, 0, 0}));
  const ops::Attention attention = ops::attention(q, k, v, {.bias = bias});
  EXPECT_EQ(bench.run(attention.y), (std::vector<double>{6, 7}));
  EXPECT_EQ(bench.run(attention.log_sum), (std::vector<double>{999000, 1000000}));
  Value* first = ops::attention(q, k, v, {.causal = true}).y;
  EXPECT_EQ(bench.run(first), (std::vector<double>{5, 6}));
}

TEST(MaxPool, TellsTheFirstPositionAndIgnoresPadding) {
  Bench bench;
  // All negative: a padding of zeros would win. The corner windows see padding first.
  Value* x = bench.in(fp32({1, 2, 3, 1}, {-1, -1, -5, -2, -1, -3}));
  Node* node = ops::max_pool(x, {.window = {2, 2}, .strides = {1, 2}, .padding_low = {1, 1}})->producer();
  EXPECT_EQ(bench.run(node->output(0)), (std::vector<double>{-1, -1, -1, -1, -2, -1}));
  EXPECT_EQ(bench.run(node->output(1)), (std::vector<double>{3, 2, 1, 0, 1, 0}));
}

TEST(MaxPool, TakesNaNForTheLargest) {
  Bench bench;
  Value* x = bench.in(fp32({1, 4, 1}, {3, kNaN, 1, 2}));
  Node* node = ops::max_pool(x, {.window = {4}})->producer();
  EXPECT_TRUE(std::isnan(bench.run(node->output(0))[0]));
  EXPECT_EQ(bench.run(node->output(1)), std::vector<double>{1});
}

TEST(Pooling, RefusesWrongWindows) {
  Bench bench;
  Value* x = bench.in({1, 32, 32, 3});
  EXPECT_ERROR(ops::max_pool(x, {.window = {16, 16}}), ErrorCode::invalid_graph, "at most 255 elements");
  EXPECT_ERROR(ops::max_pool(x, {.window = {2, 2}, .padding_low = {2, 0}}), ErrorCode::invalid_graph,
               "padding must be less than the window");
  EXPECT_ERROR(ops::max_pool(bench.in({1, 0, 3, 2}), {.window = {2, 2}, .padding_low = {1, 1}}),
               ErrorCode::invalid_graph, "no pixels", "only padding");
  EXPECT_ERROR(ops::average_pool(x, {.window = {2}}), ErrorCode::invalid_graph,
               "window must have one number");
  EXPECT_ERROR(ops::average_pool(bench.in({4, 4}), {.window = {2, 2}}), ErrorCode::invalid_graph,
               "one to three spatial axes");
}

TEST(Softmax, OfEqualNumbersIsEvenHoweverLargeTheyAre) {
  for (const double large : {1e16, 1e300}) {
    Bench bench;
    Value* x = bench.in(Tensor::from<double>({2}, {large, large}));
    EXPECT_EQ(bench.run(ops::softmax(x, 0)), (std::vector<double>{0.5, 0.5})) << large;
    EXPECT_EQ(bench.run(ops::log_softmax(x, 0)), (std::vector<double>{std::log(0.5), std::log(0.5)}))
        << large;
  }
}

TEST(CrossEntropy, SurvivesHugeLogitsAndIgnoresRows) {
  Bench bench;
  Value* logits = bench.in(fp32({3, 2}, {1000, 0, 1000, 0, 5, 7}));
  Value* labels = bench.in(Tensor::from<int64_t>({3}, {0, 1, -100}));
  Value* loss = ops::cross_entropy(logits, labels);
  EXPECT_EQ(bench.run(loss), (std::vector<double>{0, 1000, 0}));
  Value* gradient = ops::cross_entropy_gradient(logits, labels, loss);
  EXPECT_EQ(bench.run(gradient), (std::vector<double>{0, 0, 1000, -1000, 0, 0}));
}

TEST(CrossEntropy, RefusesLabelsOutsideTheClasses) {
  for (const int32_t label : {-1, 2}) {
    Bench bench;
    Value* loss =
        ops::cross_entropy(bench.in(fp32({1, 2}, {0, 0})), bench.in(Tensor::from<int32_t>({1}, {label})));
    EXPECT_ERROR(bench.run(loss), ErrorCode::invalid_argument, "cross_entropy",
                 "label " + std::to_string(label) + " of row 0", "2 classes");
  }
  Bench bench;
  EXPECT_ERROR(ops::cross_entropy(bench.in({4, 2}), bench.in(DataType::int32, {3})), ErrorCode::invalid_graph,
               "one for each row");
  EXPECT_ERROR(ops::cross_entropy(bench.in({4, 2}), bench.in(DataType::int32, {4}), {.smoothing = 1.5}),
               ErrorCode::invalid_graph, "within [0, 1]");
  EXPECT_ERROR(ops::cross_entropy(bench.in({4, 2}), bench.in(DataType::int32, {4}), {.classes = 3}),
               ErrorCode::invalid_graph, "the columns of logits");
}

// Not even what is no number.
TEST(CrossEntropy, ReadsTheColumnsThatAreClasses) {
  constexpr float kNone = std::numeric_limits<float>::quiet_NaN();
  const ops::CrossEntropyOptions options{.smoothing = 0.5, .classes = 2};
  Bench bench;
  Value* logits = bench.in(fp32({2, 3}, {1000, 0, kNone, 0, 1000, kNone}));
  Value* labels = bench.in(Tensor::from<int32_t>({2}, {1, 1}));
  Value* loss = ops::cross_entropy(logits, labels, options);
  EXPECT_EQ(bench.run(loss), (std::vector<double>{750, 250}));
  EXPECT_EQ(bench.run(ops::cross_entropy_gradient(logits, labels, loss, options)),
            (std::vector<double>{562.5, -562.5, 0, -62.5, 62.5, 0}));
  Bench outside;
  Value* third = ops::cross_entropy(outside.in(fp32({1, 3}, {0, 0, 0})),
                                    outside.in(Tensor::from<int32_t>({1}, {2})), options);
  EXPECT_ERROR(outside.run(third), ErrorCode::invalid_argument, "label 2 of row 0", "2 classes");
}

TEST(Tolerance, GrowsWithTheSumAndIsExactForIntegers) {
  EXPECT_EQ(tolerance_for(OperatorClass::contraction, DataType::int32).absolute, 0);
  EXPECT_EQ(tolerance_for(OperatorClass::movement, DataType::fp16).relative, 0);
  const Tolerance small = tolerance_for(OperatorClass::contraction, DataType::fp32, {.terms = 16});
  const Tolerance large = tolerance_for(OperatorClass::contraction, DataType::fp32, {.terms = 1600});
  EXPECT_GT(large.absolute, 50 * small.absolute);
  EXPECT_LT(large.absolute, 1e-3);
}

TEST(Compare, NamesTheWorstElement) {
  const Tensor expected = fp32({2, 3}, {1, 2, 3, 4, kNaN, 6});
  EXPECT_TRUE(is_close(expected, expected, Tolerance{}));
  const ::testing::AssertionResult result =
      is_close(fp32({2, 3}, {1, 2.5, 3, 5, kNaN, 6}), expected, Tolerance{.absolute = 0.1, .relative = 0});
  EXPECT_FALSE(result);
  EXPECT_NE(
      std::string(result.message()).find("2 of 6 elements of fp32[2, 3] are off; the worst at [1, 0]: 5"),
      std::string::npos)
      << result.message();
  EXPECT_FALSE(
      is_close(expected, fp32({3, 2}, {1, 2, 3, 4, kNaN, 6}), Tolerance{.absolute = 1, .relative = 0}));
}

}  // namespace
}  // namespace tessera::testing
