#include "onnx/model.h"
#include "support/expect_failure.h"

namespace tessera::onnx {
namespace {

using testing::expect_error;

program::RunnerOptions reference() {
  return {.devices = {Device::reference()}};
}

TEST(OnnxRun, ANetworkIsOneGraphWithParameters) {
  ::onnx::ModelProto network = model();
  ::onnx::GraphProto& graph = *network.mutable_graph();
  add_input(graph, "x", {1, 2});
  add_constant(graph, "weight", {2, 2}, {1, 2, 3, 4});
  add_constant(graph, "bias", {2}, {-10, 1});
  add_node(graph, "Gemm", {"x", "weight", "bias"}, {"h"});
  add_node(graph, "Relu", {"h"}, {"y"});
  add_output(graph, "y");
  program::Runner runner(parse(network), reference());
  const program::Instance instance = runner.instantiate({{"x", {DataType::fp32, {1, 2}}}});
  verify(*instance.graph);
  EXPECT_EQ(instance.weights.size(), 2u);
  const Tensor x = Tensor::from<float>({1, 2}, {1, 1});
  EXPECT_EQ(runner.run({{"x", x}}).at("y").tensor()->to_doubles(), (std::vector<double>{0, 7}));
  EXPECT_EQ(runner.islands().size(), 1u);
}

// A loop whose body gives its condition back: it ends by its count, or never.
::onnx::ModelProto endless_loop() {
  ::onnx::ModelProto result = model();
  ::onnx::GraphProto& graph = *result.mutable_graph();
  add_input(graph, "x", {2});
  ::onnx::NodeProto* loop = add_node(graph, "Loop", {"", "", "x"}, {"y"});
  ::onnx::AttributeProto* body = loop->add_attribute();
  body->set_name("body");
  body->set_type(::onnx::AttributeProto::GRAPH);
  ::onnx::GraphProto& inner = *body->mutable_g();
  for (const char* name : {"trip", "condition", "carried"}) inner.add_input()->set_name(name);
  add_node(inner, "Identity", {"condition"}, {"goes_on"});
  add_node(inner, "Add", {"carried", "carried"}, {"twice"});
  add_output(inner, "goes_on");
  add_output(inner, "twice");
  add_output(graph, "y");
  return result;
}

TEST(OnnxRun, EndlessLoopsEnd) {
  program::RunnerOptions options = reference();
  options.most_iterations = 50;
  program::Runner runner(parse(endless_loop()), options);
  expect_error(ErrorCode::invalid_graph, "more than 50 iterations", [&] {
    runner.run({{"x", Tensor::from<float>({2}, {1, 2})}});
  });
  // Its body was planned once.
  EXPECT_LE(runner.islands().size(), 3u);
}

TEST(OnnxRun, ShapesThatAreTooLargeAreErrors) {
  ::onnx::ModelProto bomb = model();
  ::onnx::GraphProto& graph = *bomb.mutable_graph();
  add_input(graph, "x", {1});
  ::onnx::TensorProto* shape = graph.add_initializer();
  shape->set_name("shape");
  shape->set_data_type(::onnx::TensorProto::INT64);
  shape->add_dims(3);
  for (int i = 0; i < 3; ++i) shape->add_int64_data(int64_t{1} << 20);
  add_node(graph, "Expand", {"x", "shape"}, {"y"});
  add_output(graph, "y");
  program::Runner runner(parse(bomb), reference());
  EXPECT_THROW(runner.run({{"x", Tensor::from<float>({1}, {1})}}), Error);
}

TEST(OnnxRun, ErrorsNameTheNode) {
  ::onnx::ModelProto wrong = model();
  ::onnx::GraphProto& graph = *wrong.mutable_graph();
  add_input(graph, "x", {2, 3});
  set_attribute(add_node(graph, "Softmax", {"x"}, {"y"}), "axis", 5);
  add_output(graph, "y");
  program::Runner runner(parse(wrong), reference());
  expect_error(ErrorCode::invalid_graph, "node 'the_Softmax' (Softmax): axis 5 of 2 axes", [&] {
    runner.run({{"x", Tensor(DataType::fp32, {2, 3})}});
  });
}

// Quotients and orders of numbers that int64 does not hold.
TEST(OnnxRun, Uint64IsExact) {
  const std::vector<uint64_t> a{~uint64_t{0}, uint64_t{1} << 63, 10, (uint64_t{1} << 63) + 5};
  const std::vector<uint64_t> b{3, uint64_t{1} << 63, uint64_t{1} << 63, 7};
  for (const std::string type : {"Div", "Mod", "Less", "Max"}) {
    ::onnx::ModelProto one = model();
    ::onnx::GraphProto& graph = *one.mutable_graph();
    for (const char* name : {"a", "b"}) {
      add_input(graph, name, {4});
      graph.mutable_input(graph.input_size() - 1)
          ->mutable_type()
          ->mutable_tensor_type()
          ->set_elem_type(::onnx::TensorProto::UINT64);
    }
    add_node(graph, type, {"a", "b"}, {"y"});
    add_output(graph, "y");
    program::Runner runner(parse(one), reference());
    const Tensor y =
        *runner.run({{"a", Tensor::from<uint64_t>({4}, a)}, {"b", Tensor::from<uint64_t>({4}, b)}})
             .at("y")
             .tensor();
    for (size_t i = 0; i < a.size(); ++i) {
      if (type == "Less") {
        EXPECT_EQ(y.data<bool>()[i], a[i] < b[i]) << type << i;
      } else {
        const uint64_t wanted = type == "Div"   ? a[i] / b[i]
                                : type == "Mod" ? a[i] % b[i]
                                                : std::max(a[i], b[i]);
        EXPECT_EQ(y.data<uint64_t>()[i], wanted) << type << i;
      }
    }
  }
}

}  // namespace
}  // namespace tessera::onnx
