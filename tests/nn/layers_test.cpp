// Layers: what they ask the context for, what they make, and how their weights stand in files.
#include "tessera/nn/layers.h"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "tessera/compile/executable.h"
#include "tessera/compile/feeds.h"
#include "tessera/graph/operator.h"
#include "tessera/nn/attention_parts.h"
#include "tessera/nn/loss.h"
#include "tessera/passes/differentiate.h"

#include "support/compare.h"
#include "support/expect_error.h"

namespace tessera::testing {
namespace {

struct Fixture {
  Graph graph;
  nn::Context context;

  explicit Fixture(nn::Mode mode = nn::Mode::inference) : context(graph, mode) {}
  Value* input(const Shape& shape, const std::string& name = "x", DataType type = DataType::fp32) {
    return graph.add_input(InputRole::input, name, {type, to_symbolic(shape)});
  }
  std::vector<std::string> names() const {
    std::vector<std::string> result;
    for (const nn::Variable& variable : context.variables()) result.push_back(variable.name);
    return result;
  }
  const nn::Variable& variable(const std::string& name) const {
    const auto& list = context.variables();
    return *std::find_if(list.begin(), list.end(), [&](const auto& v) { return v.name == name; });
  }
};

Tensor counting(const Shape& shape) {
  Tensor tensor(DataType::fp32, shape);
  for (int64_t i = 0; i < tensor.size(); ++i) tensor.set(i, static_cast<double>(i));
  return tensor;
}

TEST(Layers, NameTheirVariablesAsTorchDoes) {
  Fixture f(nn::Mode::training);
  Value* x = nn::convolution(f.context, "conv", f.input({2, 8, 8, 3}), 4, 3, {.padding = 1});
  x = nn::batch_norm(f.context, "bn", x);
  nn::linear(f.context, "fc", nn::flatten(x), 5);
  EXPECT_EQ(f.names(),
            (std::vector<std::string>{"conv.weight", "conv.bias", "bn.weight", "bn.bias", "bn.running_mean",
                                      "bn.running_var", "fc.weight", "fc.bias"}));
  EXPECT_TRUE(f.variable("conv.weight").decays);
  EXPECT_FALSE(f.variable("conv.bias").decays);
  EXPECT_FALSE(f.variable("bn.weight").decays);
  EXPECT_EQ(f.variable("bn.running_var").role, InputRole::state);
  EXPECT_EQ(f.graph.updates().size(), 2U);  // the running statistics
  verify(f.graph);
}

TEST(Layers, ConvolutionWeightsStandAsOihwInFiles) {
  Fixture f;
  nn::convolution(f.context, "conv", f.input({1, 8, 8, 6}), 4, 3, {.groups = 2});
  const nn::Variable& weight = f.variable("conv.weight");
  EXPECT_EQ(weight.shape, (Shape{4, 3, 3, 3}));       // [K, R, S, C / groups]
  EXPECT_EQ(weight.file_shape, (Shape{4, 3, 3, 3}));  // [K, C / groups, R, S]
  const Tensor stored = counting(weight.file_shape);
  const Tensor own = nn::from_file_layout(weight, stored);
  for (int64_t k = 0; k < 4; ++k) {
    for (int64_t c = 0; c < 3; ++c) {
      for (int64_t r = 0; r < 3; ++r) {
        for (int64_t s = 0; s < 3; ++s) {
          EXPECT_EQ(own.at(((k * 3 + r) * 3 + s) * 3 + c), stored.at(((k * 3 + c) * 3 + r) * 3 + s));
        }
      }
    }
  }
  EXPECT_TRUE(nn::to_file_layout(weight, own).identical(stored));
}

TEST(Layers, AttentionMayHaveFourLinearLayersInOneProduct) {
  Fixture f;
  Value* x = f.input({2, 5, 8});
  nn::self_attention(f.context, "attention", x, 2,
                     {.names = {{.query = "q", .key = "k", .value = "v", .output = "out.dense"}}});
  EXPECT_EQ(f.names(),
            (std::vector<std::string>{"attention.q.weight", "attention.k.weight", "attention.v.weight",
                                      "attention.q.bias", "attention.k.bias", "attention.v.bias",
                                      "attention.out.dense.weight", "attention.out.dense.bias"}));
  EXPECT_EQ(x->uses().size(), 1U);
  verify(f.graph);
}

// An empty row has a key all the same, and none has more than there are.
TEST(Layers, EndRowsByTheirLengths) {
  Fixture f;
  Value* lengths = f.input({4}, "lengths", DataType::int32);
  f.graph.add_output("shown", nn::within_lengths(lengths, 4));
  f.graph.add_output("keys", nn::key_lengths(lengths, 4));
  const std::shared_ptr<Device> device = Device::reference();
  const auto executable = compile(f.graph, device);
  executable->bind(std::make_shared<Variables>(device));
  const Feeds outputs = executable->run({{"lengths", Tensor::from<int32_t>({4}, {4, 1, 0, 9})}});
  EXPECT_EQ(outputs.at("shown").to_doubles(),
            (std::vector<double>{1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1}));
  EXPECT_EQ(outputs.at("keys").to_doubles(), (std::vector<double>{4, 1, 1, 4}));
}

// [C, K, R, S] in torch's files, for one that has C channels and makes K.
TEST(Layers, TransposedConvolutionWeightsStandAsIohwInFiles) {
  Fixture f;
  Value* y = nn::transposed_convolution(f.context, "conv", f.input({2, 5, 4, 6}), 3, 4,
                                        {.stride = 2, .padding = 1, .output_padding = 1});
  EXPECT_EQ(y->type().static_shape(), (Shape{2, 11, 9, 3}));
  const nn::Variable& weight = f.variable("conv.weight");
  EXPECT_EQ(weight.shape, (Shape{6, 4, 4, 3}));
  EXPECT_EQ(weight.file_shape, (Shape{6, 3, 4, 4}));
  const Tensor stored = counting(weight.file_shape);
  const Tensor own = nn::from_file_layout(weight, stored);
  EXPECT_EQ(own.at(((5 * 4 + 1) * 4 + 2) * 3 + 2), stored.at(((5 * 3 + 2) * 4 + 1) * 4 + 2));
  EXPECT_EQ(f.variable("conv.bias").shape, (Shape{3}));
}

TEST(Layers, FlattenedInputsStandChannelsFirstInFiles) {
  Fixture f;
  nn::linear(f.context, "fc", f.input({1, 24}), 2, {.flattened_from = {2, 3, 4}});
  const nn::Variable& weight = f.variable("fc.weight");
  EXPECT_EQ(weight.file_shape, (Shape{2, 24}));
  const Tensor stored = counting({2, 24});
  const Tensor own = nn::from_file_layout(weight, stored);
  // Ours counts [h, w, c] of [2, 3, 4], the file [c, h, w].
  EXPECT_EQ(own.at(24 + (1 * 3 + 2) * 4 + 3), stored.at(24 + (3 * 2 + 1) * 3 + 2));
  EXPECT_TRUE(nn::to_file_layout(weight, own).identical(stored));
  EXPECT_ERROR(nn::linear(f.context, "bad", f.input({1, 24}, "y"), 2, {.flattened_from = {2, 3, 5}}),
               ErrorCode::invalid_argument, "bad", "24", "[2, 3, 5]");
}

TEST(Layers, FilesOfAnotherShapeOrTypeAreToldOrConverted) {
  Fixture f;
  nn::convolution(f.context, "conv", f.input({1, 8, 8, 3}), 4, 3);
  const nn::Variable& weight = f.variable("conv.weight");
  EXPECT_ERROR(nn::from_file_layout(weight, Tensor(DataType::fp32, {4, 3, 3, 2})), ErrorCode::invalid_file,
               "conv.weight", "[4, 3, 3, 2]", "[4, 3, 3, 3]");
  const Tensor half = counting(weight.file_shape).cast(DataType::fp16);
  EXPECT_EQ(nn::from_file_layout(weight, half).data_type(), DataType::fp32);
}

TEST(Layers, SharedVariablesMustAgree) {
  Fixture f;
  Value* first = f.context.parameter("w", {2, 3}, nn::ones());
  EXPECT_EQ(f.context.parameter("w", {2, 3}, nn::ones()), first);
  EXPECT_EQ(f.context.variables().size(), 1U);
  EXPECT_ERROR(f.context.parameter("w", {3, 2}, nn::ones()), ErrorCode::invalid_argument, "'w'", "[2, 3]",
               "[3, 2]");
}

TEST(Layers, GroupsMustDivide) {
  Fixture f;
  EXPECT_ERROR(nn::convolution(f.context, "conv", f.input({1, 8, 8, 3}), 4, 3, {.groups = 2}),
               ErrorCode::invalid_argument, "conv", "2 groups", "3 inputs");
}

TEST(Layers, DropoutIsForTrainingOnly) {
  Fixture inference;
  Value* x = inference.input({4});
  EXPECT_EQ(nn::dropout(inference.context, x, 0.5), x);
  EXPECT_TRUE(inference.context.variables().empty());
  Fixture training(nn::Mode::training);
  Value* y = training.input({4});
  EXPECT_EQ(nn::dropout(training.context, y, 0), y);
  Value* first = nn::dropout(training.context, y, 0.5);
  Value* second = nn::dropout(training.context, y, 0.5);
  EXPECT_NE(print(*first->producer()), print(*second->producer()));  // streams of their own
  EXPECT_EQ(training.names(), std::vector<std::string>{"random_counter"});
}

TEST(Layers, AddToValuesBySigns) {
  Fixture f(nn::Mode::training);
  Value* x = f.input({2, 4});
  Value* y = x + nn::dropout(f.context, nn::linear(f.context, "fc", x, 4, {.bias = false}), 0.5);
  EXPECT_EQ(y->producer()->operator_name(), "add");
  EXPECT_EQ(y->producer()->operand(0), x);
  const auto gated = nn::layer_norm(f.context, "norm", y) * x - 1;
  EXPECT_EQ(gated->type(), x->type());
  verify(f.graph);
}

TEST(Layers, AreFrozenByTheirNames) {
  Fixture f(nn::Mode::training);
  f.context.transform([](const nn::Variable&, Value* value) { return ops::multiply(value, 2); });
  Value* x = f.input({2, 4});
  const auto block = [&](const std::string& name) {
    const auto scope = f.context.scope(name);
    return nn::batch_norm(f.context, "norm", nn::linear(f.context, "fc", x, 3));
  };
  {
    const auto scope = f.context.scope("network");
    f.context.freeze("encoder.");
    EXPECT_TRUE(f.context.is_frozen("encoder.fc.weight"));
    EXPECT_FALSE(f.context.is_frozen("decoder.fc.weight"));
    EXPECT_EQ(block("encoder")->producer()->operator_name(), "batch_norm_inference");
    EXPECT_EQ(block("decoder")->producer()->operator_name(), "batch_norm_training");
  }
  for (const char* name : {"fc.weight", "fc.bias", "norm.weight", "norm.bias"}) {
    const Value* frozen = f.graph.find_input(std::string("network.encoder.") + name);
    EXPECT_EQ(frozen->role(), InputRole::constant);
    EXPECT_EQ(frozen->uses()[0].node->operator_name(), "multiply");  // transforms hold for what is frozen
    EXPECT_EQ(f.graph.find_input(std::string("network.decoder.") + name)->role(), InputRole::parameter);
  }
  EXPECT_EQ(f.variable("network.encoder.norm.running_mean").role, InputRole::state);
  ASSERT_EQ(f.graph.updates().size(), 2U);
  for (const Graph::Update& update : f.graph.updates())
    EXPECT_TRUE(update.state->name().starts_with("network.decoder.")) << update.state->name();
  verify(f.graph);
}

TEST(Layers, AdaptivePoolingShrinksRepeatsAndPasses) {
  const auto pool = [](int64_t extent, int64_t size) {
    Fixture f;
    Value* x = f.input({1, extent, extent, 1});
    f.graph.add_output("y", nn::adaptive_average_pool(x, size));
    return run_reference(f.graph, std::vector{counting({1, extent, extent, 1})}).outputs[0];
  };
  expect_close(pool(4, 2), {2.5, 4.5, 10.5, 12.5}, {});  // sums of four are exact
  expect_close(pool(2, 2), {0, 1, 2, 3}, {});
  expect_close(pool(1, 2), {0, 0, 0, 0}, {});
  expect_close(pool(2, 4), {0, 0, 1, 1, 0, 0, 1, 1, 2, 2, 3, 3, 2, 2, 3, 3}, {});
  EXPECT_ERROR(pool(5, 2), ErrorCode::unsupported, "5", "2");
}

// All tensors are sines of their elements' numbers, each from another number on; the values are those of
// torch.nn.MultiheadAttention in float64.
TEST(Layers, SelfAttentionIsTorchs) {
  const auto run = [](bool causal) {
    Fixture f;
    Value* x = f.input({2, 3, 4});
    f.graph.add_output("y", nn::self_attention(f.context, "mixer", x, 2, {.causal = causal}));
    EXPECT_EQ(f.names(), (std::vector<std::string>{"mixer.in_proj_weight", "mixer.in_proj_bias",
                                                   "mixer.out_proj.weight", "mixer.out_proj.bias"}));
    std::vector<Tensor> tensors;
    for (const auto& input : f.graph.inputs()) {
      Tensor& tensor = tensors.emplace_back(DataType::fp32, input->type().static_shape());
      const auto first = static_cast<double>(input->index());
      for (int64_t i = 0; i < tensor.size(); ++i) tensor.set(i, std::sin(static_cast<double>(i) + first));
    }
    return run_reference(f.graph, tensors).outputs[0];
  };
  // Two products of four terms within 4 and a softmax between, each rounded to fp32: 2^-24 * 4 * 4 each.
  const Tolerance tolerance{.absolute = 4e-6};
  expect_close(run(false),
               {-0.781271029, -2.427671771, 1.665127899,  -0.416342679, 1.875042010, -3.984489797,
                1.044023203,  1.952437592,  0.230793118,  -4.121196450, 2.866986957, -0.293993014,
                0.119810202,  -1.792443953, -0.066378554, 1.212005798,  1.261517322, -4.017463911,
                1.700654530,  1.127005950,  -1.685250537, -1.243762016, 1.021397289, -0.758711620},
               tolerance);
  expect_close(run(true), {0.626210487,  -2.636308087, 0.530393977,  1.275716817,  0.651882006, -2.840116554,
                           0.771158667,  1.164776676,  0.230793118,  -4.121196450, 2.866986957, -0.293993014,
                           -0.125855331, -1.986439090, 0.432894347,  0.753307842,  1.110528477, -3.244622555,
                           0.841317730,  1.477564629,  -1.685250537, -1.243762016, 1.021397289, -0.758711620},
               tolerance);
  Fixture f;
  EXPECT_ERROR(nn::self_attention(f.context, "mixer", f.input({2, 3, 4}), 3), ErrorCode::invalid_argument,
               "'mixer'", "3 heads");
}

// y and the gradients of q, k and v where y flows into a sum of squares, of rows that `ranks` share.
std::vector<Tensor> attend_with_dropout(double rate, const nn::Ranks& ranks, bool by_softmax) {
  constexpr int64_t kRows = 4;
  Graph graph;
  nn::Context context(graph, nn::Mode::training, {}, ranks);
  const int64_t rows = kRows / ranks.count;
  std::vector<Value*> operands;
  std::vector<Tensor> tensors;
  for (const char* name : {"q", "k", "v"}) {
    const Shape shape{rows, 2, 5, 3};
    operands.push_back(graph.add_input(InputRole::input, name, {DataType::fp32, to_symbolic(shape)}));
    Tensor& tensor = tensors.emplace_back(DataType::fp32, shape);
    const int64_t first = ranks.rank * tensor.size() + 1000 * std::ssize(operands);
    for (int64_t i = 0; i < tensor.size(); ++i) tensor.set(i, 2 * std::sin(static_cast<double>(first + i)));
  }
  Value* y = nullptr;
  if (by_softmax) {
    Value* products = ops::matmul(operands[0], operands[1], {.transpose_b = true});
    Value* weights = ops::softmax(ops::multiply(products, 1 / std::sqrt(3.0)));
    y = ops::matmul(nn::dropout(context, weights, rate), operands[2]);
  } else {
    y = nn::dropout_attention(context, operands[0], operands[1], operands[2], rate);
  }
  graph.add_output("y", y);
  Value* loss = ops::reduce_sum(ops::square(y));
  for (Value* gradient : differentiate(graph, loss, operands)) graph.add_output("gradient", gradient);
  if (rate > 0) tensors.push_back(Tensor::from<int64_t>({2}, {11, 3}));  // the counter
  return run_reference(graph, tensors).outputs;
}

// The weights written down, and dropped as any other values.
TEST(Layers, AttentionDropsItsWeights) {
  const std::vector<Tensor> actual = attend_with_dropout(0.4, {}, false);
  const std::vector<Tensor> expected = attend_with_dropout(0.4, {}, true);
  // Sums of fifteen products of numbers up to about six, in fp32 where they are written down.
  for (size_t i = 0; i < actual.size(); ++i)
    expect_close(actual[i], expected[i].to_doubles(), {.absolute = 2e-5, .relative = 2e-5});
  EXPECT_FALSE(actual[0].identical(attend_with_dropout(0, {}, false)[0]));
}

TEST(Layers, RanksDropTheWeightsThatOneDrops) {
  const std::vector<Tensor> whole = attend_with_dropout(0.4, {}, false);
  for (int64_t rank = 0; rank < 2; ++rank) {
    const std::vector<Tensor> part = attend_with_dropout(0.4, {rank, 2}, false);
    for (size_t i = 0; i < part.size(); ++i) {
      const std::vector<double> all = whole[i].to_doubles();
      const auto first = all.begin() + rank * part[i].size();
      expect_close(part[i], std::vector<double>(first, first + part[i].size()),
                   {.absolute = 2e-5, .relative = 2e-5});
    }
  }
}

TEST(Losses, OfEachExampleHaveThatMean) {
  for (const nn::Loss& loss :
       {nn::cross_entropy({.smoothing = 0.1}), nn::mean_squared_error(2), nn::binary_cross_entropy(2)}) {
    Fixture f;
    Value* logits = f.input({2, 2}, "logits");
    Value* labels = f.input({2}, "labels", DataType::int32);
    f.graph.add_output("mean", loss.build(logits, labels));
    f.graph.add_output("examples", loss.examples(logits, labels));
    const std::vector<Tensor> outputs =
        run_reference(f.graph, std::vector{Tensor::from<float>({2, 2}, {1, 2, 3, 5}),
                                           Tensor::from<int32_t>({2}, {0, 1})})
            .outputs;
    EXPECT_EQ(outputs[1].shape(), Shape{2});
    EXPECT_NE(outputs[1].at(0), outputs[1].at(1)) << loss.name;
    // Three numbers below 4, rounded to fp32 by each of some four nodes; squared errors are exact.
    EXPECT_NEAR((outputs[1].at(0) + outputs[1].at(1)) / 2, outputs[0].at(0), 12 * 0x1p-23) << loss.name;
  }
}

// As torch.nn.CrossEntropyLoss(ignore_index=...) has it; where all are ignored PyTorch gives NaN.
TEST(Losses, DoNotCountWhatIsIgnored) {
  const auto loss_of = [](const std::vector<int32_t>& of_rows, int64_t ignored) {
    Fixture f;
    Value* logits = f.input({3, 2}, "logits");
    Value* labels = f.input({3}, "labels", DataType::int32);
    f.graph.add_output("loss", nn::cross_entropy({.ignored_label = ignored}).build(logits, labels));
    return run_reference(f.graph, std::vector{Tensor::from<float>({3, 2}, {1, 2, 3, 5, 4, 4}),
                                              Tensor::from<int32_t>({3}, of_rows)})
        .outputs[0]
        .at(0);
  };
  // Numbers below 4 in fp32, rounded by each of some four nodes: 2^-23 each.
  constexpr double kClose = 1e-6;
  const double first = std::log1p(std::exp(1.0));    // logits 1, 2; label 0
  const double second = std::log1p(std::exp(-2.0));  // logits 3, 5; label 1
  EXPECT_NEAR(loss_of({0, 1, -100}, -100), (first + second) / 2, kClose);
  EXPECT_NEAR(loss_of({0, -1, -1}, -1), first, kClose);
  EXPECT_NEAR(loss_of({0, 1, 0}, -1), (first + second + std::log(2.0)) / 3, kClose);
  EXPECT_EQ(loss_of({-100, -100, -100}, -100), 0);
}

TEST(Losses, AreMeansOverTheBatch) {
  const auto loss_of = [](const nn::Loss& loss) {
    Fixture f;
    Value* logits = f.input({2, 2}, "logits");
    Value* labels = f.input({2}, "labels", DataType::int32);
    f.graph.add_output("loss", loss.build(logits, labels));
    return run_reference(f.graph, std::vector{Tensor::from<float>({2, 2}, {1, 2, 3, 5}),
                                              Tensor::from<int32_t>({2}, {0, 1})})
        .outputs[0]
        .at(0);
  };
  // Numbers below 8 in fp32, rounded by each of some four nodes: 2^-22 each.
  constexpr double kClose = 1e-6;
  const double first = std::log1p(std::exp(1.0));    // logits 1, 2; label 0
  const double second = std::log1p(std::exp(-2.0));  // logits 3, 5; label 1
  EXPECT_NEAR(loss_of(nn::cross_entropy()), (first + second) / 2, kClose);
  // Smoothing 0.1 gives each of both classes 0.05.
  EXPECT_NEAR(loss_of(nn::cross_entropy({.smoothing = 0.1})), (first - 0.05 + second + 0.1) / 2, kClose);
  EXPECT_NEAR(loss_of(nn::mean_squared_error(2)), (0 + 4 + 9 + 16) / 4.0, kClose);
  const auto softplus = [](double x) { return std::log1p(std::exp(x)); };
  EXPECT_NEAR(loss_of(nn::binary_cross_entropy(2)),
              (softplus(-1) + softplus(2) + softplus(3) + softplus(-5)) / 4, kClose);
}

}  // namespace
}  // namespace tessera::testing
