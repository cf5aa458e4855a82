// ConvInteger beside its plainest loop: with zero points that are known, that are given at each run, or that
// are none, and padding of which the image's zero point says what it is.
#include <map>
#include <span>

#include "tessera/graph/operator.h"

#include "onnx/model.h"
#include "support/random_tensor.h"

namespace tessera::onnx {
namespace {

using testing::random_tensor;

enum class Given { not_at_all, as_constant, at_each_run };

struct IntegerConvolution {
  DataType x_type;
  DataType weight_type;
  Given x_zero;
  Given weight_zero;
  int64_t weight_zeros = 1;  // or one for each filter
  bool padded = true;
};

constexpr int64_t kImages = 2, kHeight = 6, kWidth = 5, kInputs = 4, kFilters = 6, kGroups = 2;
constexpr int64_t kWindow[] = {3, 2}, kStrides[] = {2, 1}, kDilations[] = {1, 2};

std::vector<int64_t> pads_of(const IntegerConvolution& own) {
  return own.padded ? std::vector<int64_t>{1, 0, 2, 3} : std::vector<int64_t>(4, 0);
}

int64_t at(const Tensor& tensor, std::initializer_list<int64_t> place) {
  int64_t index = 0;
  size_t axis = 0;
  for (const int64_t i : place) index = index * tensor.shape()[axis++] + i;
  return static_cast<int64_t>(tensor.at(index));
}

std::vector<double> expected_of(const IntegerConvolution& own,
                                const std::map<std::string, Tensor>& operands) {
  const auto zero = [&](const std::string& name, int64_t filter) {
    const auto found = operands.find(name);
    if (found == operands.end()) return int64_t{0};
    return static_cast<int64_t>(found->second.at(found->second.size() == 1 ? 0 : filter));
  };
  const Tensor& x = operands.at("x");
  const Tensor& weight = operands.at("w");
  const std::vector<int64_t> pads = pads_of(own);
  const auto count = [&](size_t axis, int64_t extent) {
    return (extent + pads[axis] + pads[axis + 2] - kDilations[axis] * (kWindow[axis] - 1) - 1) /
               kStrides[axis] +
           1;
  };
  std::vector<double> sums;
  for (int64_t n = 0; n < kImages; ++n) {
    for (int64_t k = 0; k < kFilters; ++k) {
      for (int64_t row = 0; row < count(0, kHeight); ++row) {
        for (int64_t column = 0; column < count(1, kWidth); ++column) {
          int64_t sum = 0;
          for (int64_t i = 0; i < kWindow[0]; ++i) {
            for (int64_t j = 0; j < kWindow[1]; ++j) {
              const int64_t h = row * kStrides[0] - pads[0] + i * kDilations[0];
              const int64_t w = column * kStrides[1] - pads[1] + j * kDilations[1];
              if (h < 0 || h >= kHeight || w < 0 || w >= kWidth) continue;
              for (int64_t c = 0; c < kInputs / kGroups; ++c) {
                const int64_t channel = k / (kFilters / kGroups) * (kInputs / kGroups) + c;
                sum +=
                    (at(x, {n, channel, h, w}) - zero("xz", 0)) * (at(weight, {k, c, i, j}) - zero("wz", k));
              }
            }
          }
          sums.push_back(static_cast<double>(sum));
        }
      }
    }
  }
  return sums;
}

int element_type(DataType type) {
  return type == DataType::int8 ? ::onnx::TensorProto::INT8 : ::onnx::TensorProto::UINT8;
}

void set_integers(::onnx::NodeProto* node, const std::string& name, std::span<const int64_t> values) {
  ::onnx::AttributeProto* attribute = node->add_attribute();
  attribute->set_name(name);
  attribute->set_type(::onnx::AttributeProto::INTS);
  for (const int64_t value : values) attribute->add_ints(value);
}

void check(const IntegerConvolution& own) {
  ::onnx::ModelProto network = model();
  ::onnx::GraphProto& graph = *network.mutable_graph();
  std::map<std::string, Tensor> operands;
  std::map<std::string, program::Item> inputs;
  std::map<std::string, TensorType> types;
  // The name of the operand, "" where it is none.
  const auto add = [&](const std::string& name, DataType type, const Shape& shape,
                       Given given) -> std::string {
    if (given == Given::not_at_all) return "";
    const Tensor tensor = random_tensor(type, shape, -200, 300, operands.size() + 1);
    operands[name] = tensor;
    if (given == Given::as_constant) {
      ::onnx::TensorProto* constant = add_constant(graph, name, shape, {});
      constant->set_data_type(element_type(type));
      for (const double value : tensor.to_doubles()) constant->add_int32_data(static_cast<int32_t>(value));
    } else {
      add_input(graph, name, shape);
      graph.mutable_input(graph.input_size() - 1)
          ->mutable_type()
          ->mutable_tensor_type()
          ->set_elem_type(element_type(type));
      inputs[name] = tensor;
      types[name] = {type, to_symbolic(shape)};
    }
    return name;
  };
  const Shape zeros = own.weight_zeros == 1 ? Shape{} : Shape{own.weight_zeros};
  const std::vector<std::string> names{
      add("x", own.x_type, {kImages, kInputs, kHeight, kWidth}, Given::at_each_run),
      add("w", own.weight_type, {kFilters, kInputs / kGroups, kWindow[0], kWindow[1]}, Given::at_each_run),
      add("xz", own.x_type, {}, own.x_zero), add("wz", own.weight_type, zeros, own.weight_zero)};
  ::onnx::NodeProto* node = add_node(graph, "ConvInteger", names, {"y"});
  set_integers(node, "strides", kStrides);
  set_integers(node, "dilations", kDilations);
  set_integers(node, "pads", pads_of(own));
  set_attribute(node, "group", kGroups);
  add_output(graph, "y");
  program::Runner runner(parse(network), {.devices = {Device::reference()}});
  const program::Instance instance = runner.instantiate(types);
  for (const auto& step : instance.graph->nodes()) {
    EXPECT_FALSE(is_floating(step->output()->data_type())) << print(*instance.graph);
  }
  const Tensor y = *runner.run(inputs).at("y").tensor();
  EXPECT_EQ(y.data_type(), DataType::int32);
  EXPECT_EQ(y.to_doubles(), expected_of(own, operands)) << print(*instance.graph);
}

TEST(OnnxIntegerConvolution, TakesZeroPointsFromWhereverTheyCome) {
  const DataType bytes[] = {DataType::int8, DataType::uint8};
  const Given ways[] = {Given::not_at_all, Given::as_constant, Given::at_each_run};
  for (const DataType x : bytes) {
    for (const DataType weight : bytes) {
      for (const Given x_zero : ways) {
        for (const Given weight_zero : ways) check({x, weight, x_zero, weight_zero});
      }
    }
  }
}

TEST(OnnxIntegerConvolution, TakesAZeroPointForEachFilterAndNoPadding) {
  for (const bool padded : {false, true}) {
    check({DataType::uint8, DataType::int8, Given::as_constant, Given::at_each_run, kFilters, padded});
    check({DataType::uint8, DataType::uint8, Given::not_at_all, Given::as_constant, kFilters, padded});
  }
}

}  // namespace
}  // namespace tessera::onnx
