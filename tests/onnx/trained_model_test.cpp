// Models as others write them, trained: what becomes of their nodes, and what does not fit.
#include <algorithm>
#include <cmath>

#include "tessera/base/file.h"

#include "onnx/model.h"
#include "onnx/tiny_training.h"
#include "support/expect_failure.h"
#include "support/temporary_folder.h"

namespace tessera::onnx {
namespace {

using testing::expect_error;
using testing::TemporaryFolder;

// [batch, 1, 6, 6] through Flatten, Gemm, `middle` and Gemm to three logits.
struct Perceptron {
  ::onnx::ModelProto proto = model();

  explicit Perceptron(
      const std::function<std::string(::onnx::GraphProto&, const std::string&)>& middle = {}) {
    ::onnx::GraphProto& graph = *proto.mutable_graph();
    add_input(graph, "x", {0, 1, 6, 6});
    input().mutable_dim(0)->set_dim_param("N");
    add_node(graph, "Flatten", {"x"}, {"flat"});
    add_constant(graph, "w1", {8, 36}, values(8 * 36));
    add_constant(graph, "b1", {8}, values(8));
    set_attribute(add_node(graph, "Gemm", {"flat", "w1", "b1"}, {"h"}), "transB", 1);
    add_node(graph, "Relu", {"h"}, {"r"});
    const std::string last = middle ? middle(graph, "r") : "r";
    add_constant(graph, "w2", {3, 8}, values(24));
    set_attribute(add_node(graph, "Gemm", {last, "w2"}, {"y"}), "transB", 1);
    add_output(graph, "y");
  }

  ::onnx::TensorShapeProto& input() {
    return *proto.mutable_graph()->mutable_input(0)->mutable_type()->mutable_tensor_type()->mutable_shape();
  }

  static std::vector<float> values(size_t count) {
    std::vector<float> values;
    for (size_t i = 0; i < count; ++i) values.push_back(0.3F * std::sin(static_cast<float>(i * i + 1)));
    return values;
  }

  models::Model read(const models::ClassifierOptions& options = kTiny) const {
    const TemporaryFolder folder;
    write_file(folder / "perceptron.onnx", proto.SerializeAsString());
    return models::read_network(folder / "perceptron.onnx", options);
  }
};

std::vector<std::string> names_of(const std::vector<nn::Variable>& variables) {
  std::vector<std::string> names;
  for (const nn::Variable& variable : variables)
    names.push_back(variable.name + (variable.role == InputRole::state ? " (state)" : ""));
  std::sort(names.begin(), names.end());
  return names;
}

using Names = std::vector<std::string>;

Names variables_in_training(const models::Model& network) {
  Graph graph;
  nn::Context context(graph, nn::Mode::training);
  network.forward(context, graph.add_input(InputRole::input, "images", network.input_type(4)));
  return names_of(context.variables());
}

TEST(OnnxTrainedModel, TakesChannelsFirst) {
  train::Trainer trainer = trainer_of(task_of(Perceptron().read()));
  const std::vector<double> losses = losses_of(trainer);
  EXPECT_LT(losses.back(), 0.8 * losses.front());
}

// Exporters fix the batch unless they are told otherwise, which most networks do not depend on.
TEST(OnnxTrainedModel, TakesOtherBatchesThanTheFileSays) {
  Perceptron fixed;
  fixed.input().mutable_dim(0)->set_dim_value(1);
  train::Trainer with = trainer_of(task_of(fixed.read()));
  train::Trainer without = trainer_of(task_of(Perceptron().read()));
  EXPECT_EQ(losses_of(with), losses_of(without));
}

// Forward and backward, what is between channels first at the start and at the end is kept channels last.
TEST(OnnxTrainedModel, TrainsChannelsFirstWithoutTransposes) {
  ::onnx::ModelProto proto = model();
  ::onnx::GraphProto& graph = *proto.mutable_graph();
  add_input(graph, "x", {0, 1, 6, 6});
  graph.mutable_input(0)
      ->mutable_type()
      ->mutable_tensor_type()
      ->mutable_shape()
      ->mutable_dim(0)
      ->set_dim_param("N");
  add_constant(graph, "conv1", {4, 1, 3, 3}, Perceptron::values(36));
  add_constant(graph, "conv2", {4, 4, 3, 3}, Perceptron::values(144));
  add_constant(graph, "fc", {3, 4}, Perceptron::values(12));
  for (const char* name : {"scale", "bias", "mean", "variance"})
    add_constant(graph, name, {4}, std::vector<float>(4, name[0] == 's' || name[0] == 'v' ? 1.0F : 0.0F));
  add_node(graph, "Conv", {"x", "conv1"}, {"c1"});
  add_node(graph, "BatchNormalization", {"c1", "scale", "bias", "mean", "variance"}, {"n"});
  add_node(graph, "Relu", {"n"}, {"r"});
  add_node(graph, "Conv", {"r", "conv2"}, {"c2"});
  add_node(graph, "GlobalAveragePool", {"c2"}, {"g"});
  add_node(graph, "Flatten", {"g"}, {"f"});
  set_attribute(add_node(graph, "Gemm", {"f", "fc"}, {"y"}), "transB", 1);
  add_output(graph, "y");
  const TemporaryFolder folder;
  write_file(folder / "network.onnx", proto.SerializeAsString());
  train::Trainer trainer = trainer_of(task_of(models::read_network(folder / "network.onnx", kTiny)));
  for (const auto& node : trainer.step({{"batch", 8}}).graph().nodes())
    EXPECT_NE(node->operator_name(), "transpose") << print(*node);
}

TEST(OnnxTrainedModel, DropsInTrainingAlone) {
  const Perceptron dropping([](::onnx::GraphProto& graph, const std::string& x) {
    add_constant(graph, "ratio", {}, {0.5F});
    add_node(graph, "Dropout", {x, "ratio"}, {"dropped"});
    return "dropped";
  });
  EXPECT_EQ(variables_in_training(dropping.read()), (Names{"b1", "random_counter (state)", "w1", "w2"}));
  train::Trainer with = trainer_of(task_of(dropping.read()));
  train::Trainer without = trainer_of(task_of(Perceptron().read()));
  const data::Loader loader = testing::tiny_evaluation();
  EXPECT_TRUE(with.predict(loader).at("logits").identical(without.predict(loader).at("logits")));
  EXPECT_NE(losses_of(with).front(), losses_of(without).front());
}

TEST(OnnxTrainedModel, GivesTheLogitsOfProbabilities) {
  Perceptron probable;
  ::onnx::GraphProto& graph = *probable.proto.mutable_graph();
  set_attribute(add_node(graph, "Softmax", {"y"}, {"p"}), "axis", 1);
  graph.mutable_output(0)->set_name("p");
  train::Trainer with = trainer_of(task_of(probable.read()));
  train::Trainer without = trainer_of(task_of(Perceptron().read()));
  EXPECT_EQ(losses_of(with), losses_of(without));
}

// What is no classification's Softmax stays, and what is damaged is told of and not crashed on.
TEST(OnnxTrainedModel, LeavesOtherNodesAlone) {
  Perceptron over_rows;
  ::onnx::GraphProto& graph = *over_rows.proto.mutable_graph();
  set_attribute(add_node(graph, "Softmax", {"y"}, {"p"}), "axis", 0);
  graph.mutable_output(0)->set_name("p");
  const models::Network kept = models::build(over_rows.read(), 4);
  size_t exponentials = 0;
  for (const auto& node : kept.graph->nodes()) exponentials += node->operator_name() == "softmax" ? 1 : 0;
  EXPECT_EQ(exponentials, 1U);
  for (const char* type : {"Identity", "BatchNormalization", "Softmax"}) {
    Perceptron damaged;
    add_node(*damaged.proto.mutable_graph(), type, {"b1", "b1", "b1", "b1", "b1"}, {});
    try {
      damaged.read();
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("perceptron.onnx: "), std::string::npos) << error.what();
    }
  }
}

// Exporters write equal contents once: here the scale of two normalizations and all that is zero.
TEST(OnnxTrainedModel, SeparatesWhatWasEqual) {
  const Perceptron shared([](::onnx::GraphProto& graph, const std::string& x) {
    add_constant(graph, "ones", {8}, std::vector<float>(8, 1));
    add_constant(graph, "zeros", {8}, std::vector<float>(8, 0));
    add_node(graph, "BatchNormalization", {x, "ones", "zeros", "zeros", "ones"}, {"n1"});
    add_node(graph, "Identity", {"ones"}, {"scale2"});
    add_node(graph, "BatchNormalization", {"n1", "scale2", "b1", "zeros", "ones"}, {"n2"});
    return "n2";
  });
  EXPECT_EQ(variables_in_training(shared.read()),
            (Names{"b1", "n1.running_mean (state)", "n1.running_var (state)", "n2.running_mean (state)",
                   "n2.running_var (state)", "ones", "scale2", "w1", "w2", "zeros"}));
  train::Trainer trainer = trainer_of(task_of(shared.read()));
  losses_of(trainer);
  const auto tensors = trainer.checkpoint().tensors;
  EXPECT_FALSE(tensors.at("ones").identical(tensors.at("scale2")));
  EXPECT_FALSE(tensors.at("n1.running_mean").identical(tensors.at("n2.running_mean")));
}

// What is made of a weight alone would be folded for inference.
TEST(OnnxTrainedModel, TrainsWeightsThroughWhatIsMadeOfThem) {
  const Perceptron transposed([](::onnx::GraphProto& graph, const std::string& x) {
    add_constant(graph, "w", {8, 8}, Perceptron::values(64));
    add_node(graph, "Transpose", {"w"}, {"wt"});
    add_node(graph, "MatMul", {x, "wt"}, {"m"});
    return "m";
  });
  train::Trainer trainer = trainer_of(task_of(transposed.read()));
  const Tensor before = trainer.checkpoint().tensors.at("w").clone();
  losses_of(trainer);
  EXPECT_FALSE(trainer.checkpoint().tensors.at("w").identical(before));
}

TEST(OnnxTrainedModel, SaysWhatDoesNotFit) {
  const auto refuse = [](const Perceptron& perceptron, const std::string& part,
                         const models::ClassifierOptions& options = kTiny) {
    expect_error(ErrorCode::unsupported, part, [&] { perceptron.read(options); });
    expect_error(ErrorCode::unsupported, "perceptron.onnx: ", [&] { perceptron.read(options); });
  };
  refuse(Perceptron(), "model.classes): fp32[3, 10] is wanted",
         {.classes = 10, .image_size = 6, .channels = 1});
  refuse(Perceptron(), "'x' is fp32[N, 1, 6, 6], and the images are of 8 x 8 pixels with 1 channels",
         {.classes = 3, .image_size = 8, .channels = 1});
  Perceptron fixed([](::onnx::GraphProto& graph, const std::string& x) {
    ::onnx::TensorProto* shape = graph.add_initializer();
    shape->set_name("shape");
    shape->set_data_type(::onnx::TensorProto::INT64);
    shape->add_dims(2);
    for (const int64_t extent : {1, 8}) shape->add_int64_data(extent);
    add_node(graph, "Reshape", {x, "shape"}, {"one"});
    return "one";
  });
  fixed.input().mutable_dim(0)->set_dim_value(1);
  expect_error(ErrorCode::invalid_graph, "it is written for batches of 1", [&] { fixed.read(); });
  Perceptron flat;
  flat.input().mutable_dim()->RemoveLast();
  refuse(flat, "'x' is fp32[N, 1, 6], and training gives images");
  Perceptron two;
  add_input(*two.proto.mutable_graph(), "more", {2});
  refuse(two, "it has 2 inputs");
  Perceptron outputs;
  add_output(*outputs.proto.mutable_graph(), "h");
  refuse(outputs, "it has 2 outputs");
  Perceptron narrow;
  auto* half = narrow.proto.mutable_graph()->mutable_initializer(0);
  half->set_data_type(::onnx::TensorProto::FLOAT16);
  half->clear_float_data();
  half->set_raw_data(std::string(2 * 8 * 36, '\0'));
  refuse(narrow, "its weight 'w1' is fp16[8, 36]");
  refuse(Perceptron([](::onnx::GraphProto& graph, const std::string& x) {
           add_node(graph, "NonZero", {x}, {"places"});
           return x;
         }),
         "is no single graph");
  expect_error(ErrorCode::unsupported, "end with .onnx", [] { models::read_network("x.pt", kTiny); });
  expect_error(ErrorCode::io, "nowhere.onnx", [] { models::read_network("nowhere.onnx", kTiny); });
}

// A shape that is written for one batch is found when the network is made for any.
TEST(OnnxTrainedModel, IsServedAtOneBatchAlone) {
  const Perceptron reversed([](::onnx::GraphProto& graph, const std::string& x) {
    // The batch reversed: where that begins depends on how large it is.
    const auto integers = [&](const std::string& name, int64_t value) {
      ::onnx::TensorProto* tensor = graph.add_initializer();
      tensor->set_name(name);
      tensor->set_data_type(::onnx::TensorProto::INT64);
      tensor->add_dims(1);
      tensor->add_int64_data(value);
    };
    integers("first", -1);
    integers("end", -1000);
    integers("axis", 0);
    add_node(graph, "Slice", {x, "first", "end", "axis", "first"}, {"reversed"});
    return "reversed";
  });
  const nn::Task task = task_of(reversed.read());
  EXPECT_NO_THROW(train::build_frozen(task, train::Reading::inference, {{"batch", 5}}));
  expect_error(ErrorCode::unsupported, "depends on how large the batch is",
               [&] { train::build_served(task); });
}

}  // namespace
}  // namespace tessera::onnx
