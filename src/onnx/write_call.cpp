#include <algorithm>

#include "tessera/base/error.h"

#include "onnx/graph_writer.h"

namespace tessera::onnx {

void WriteCall::require(bool condition, const std::string& what) const {
  tessera::require(condition, ErrorCode::unsupported,
                   "node '{}' ({}) cannot be written in the ONNX format: {}", node_.name(),
                   node_.operator_name(), what);
}

std::string WriteCall::operand_like_first(size_t number) {
  const DataType type = node_.input(0)->data_type();
  const Value* value = node_.operand(number);
  if (value->data_type() == type) return operand(number);
  return add("Cast", {operand(number)}, {{"to", type}});
}

std::string WriteCall::constant(const Tensor& tensor) {
  return writer_.add_initializer(writer_.unique_name(node_.name() + "/constant"), tensor);
}

std::string WriteCall::integers(const std::vector<int64_t>& values) {
  return constant(Tensor::from<int64_t>({std::ssize(values)}, values));
}

std::string WriteCall::counted(const std::string& extent) {
  const auto number = [&](double value) { return constant(Tensor::scalar(DataType::int64, value)); };
  return add("Range", {number(0), add("Squeeze", {extent}), number(1)});
}

std::vector<int64_t> WriteCall::both(const std::string& low, const std::string& high) const {
  std::vector<int64_t> values = attributes().integers(low);
  const std::vector<int64_t>& after = attributes().integers(high);
  values.insert(values.end(), after.begin(), after.end());
  return values;
}

std::string WriteCall::add(const std::string& type, const std::vector<std::string>& operands,
                           const Attributes& attributes) {
  const std::string name = writer_.unique_name(node_.name() + "/" + type);
  return writer_.add_node(type, operands, attributes, {name}).front();
}

void WriteCall::result(const std::string& type, const std::vector<std::string>& operands,
                       const Attributes& attributes, AxisOrder order) {
  const std::string name = writer_.name_to_be(node_.output(), order);
  writer_.add_node(type, operands, attributes, {name});
  writer_.set_name(node_.output(), order, name);
}

AxisOrder WriteCall::cheapest_order() {
  const auto waits = [&](const Value* input) {
    return input->type().rank() == rank() && rank() > 2 && writer_.known(input) == nullptr &&
           writer_.is_there(input, AxisOrder::channels_first) && !writer_.is_there(input, AxisOrder::as_is);
  };
  const std::vector<Value*>& inputs = node_.inputs();
  return std::any_of(inputs.begin(), inputs.end(), waits) ? AxisOrder::channels_first : AxisOrder::as_is;
}

std::string WriteCall::broadcast_operand(size_t place, AxisOrder order) {
  const Value* value = node_.input(place);
  const int64_t missing = rank() - value->type().rank();
  if (order == AxisOrder::as_is || value->type().rank() == 0) return writer_.name(value);
  if (missing == 0) return writer_.name(value, order);
  // Axes that broadcasting would put in front come to stand after the channels.
  const std::vector<int64_t> permutation = channels_first_permutation(rank());
  if (const Tensor* tensor = writer_.known(value); tensor != nullptr && tensor->shape().size() == 1) {
    Shape shape(static_cast<size_t>(rank()), 1);
    shape[1] = tensor->shape()[0];
    return writer_.add_initializer(writer_.unique_name(value->name()), tensor->reshape(shape));
  }
  std::vector<int64_t> axes;
  for (int64_t axis = 0; axis < missing; ++axis) axes.push_back(axis);
  return add("Transpose", {add("Unsqueeze", {writer_.name(value), integers(axes)})}, {{"perm", permutation}});
}

}  // namespace tessera::onnx
