// Normalizations; statistics of 16-bit values that stay in fp32 are given in the values' own type where the
// format has one type for both.
#include "onnx/graph_writer.h"

namespace tessera::onnx {
namespace {

double epsilon(const WriteCall& call) {
  return call.attributes().real("epsilon");
}

void write_batch_norm(WriteCall& call) {
  std::vector<std::string> operands{call.operand(0, AxisOrder::channels_first)};
  for (size_t number = 1; number < 5; ++number) operands.push_back(call.operand(number));
  call.result("BatchNormalization", operands, {{"epsilon", epsilon(call)}}, AxisOrder::channels_first);
}

// This opset has no norm by the root mean square. Squares of 16-bit values are past their range.
void write_rms_norm(WriteCall& call) {
  const Value& x = *call.node().operand(0);
  const DataType type = call.node().operand(1)->data_type();
  const bool narrow = x.data_type() != type;
  const std::string wide = narrow ? call.add("Cast", {call.operand(0)}, {{"to", type}}) : call.operand(0);
  std::vector<int64_t> axes;
  for (int64_t axis = -call.attributes().integer("axes"); axis < 0; ++axis) axes.push_back(axis);
  const std::string mean = call.add("ReduceMean", {call.add("Mul", {wide, wide}), call.integers(axes)},
                                    {{"keepdims", int64_t{1}}});
  const std::string root =
      call.add("Sqrt", {call.add("Add", {mean, call.constant(Tensor::scalar(type, epsilon(call)))})});
  const std::vector<std::string> scaled{call.add("Div", {wide, root}), call.operand(1)};
  const bool biased = call.node().operand(2) != nullptr;
  if (!biased && !narrow) {
    call.result("Mul", scaled);
    return;
  }
  const std::string product = call.add("Mul", scaled);
  if (!narrow) {
    call.result("Add", {product, call.operand(2)});
    return;
  }
  call.result("Cast", {biased ? call.add("Add", {product, call.operand(2)}) : product},
              {{"to", x.data_type()}});
}

void write_layer_norm(WriteCall& call) {
  if (!call.attributes().boolean("centered")) {
    write_rms_norm(call);
    return;
  }
  std::vector<std::string> operands{call.operand(0), call.operand_like_first(1)};
  if (call.node().operand(2) != nullptr) operands.push_back(call.operand_like_first(2));
  call.result("LayerNormalization", operands,
              {{"axis", -call.attributes().integer("axes")}, {"epsilon", epsilon(call)}});
}

// [C] against channels-first values.
std::string per_channel(WriteCall& call, size_t number) {
  std::vector<int64_t> axes;
  for (int64_t axis = 1; axis + 1 < call.rank(); ++axis) axes.push_back(axis);
  return call.add("Unsqueeze", {call.operand_like_first(number), call.integers(axes)});
}

// The operator of that name in the format scales groups, not channels, in this opset.
void write_group_norm(WriteCall& call) {
  const Value* x = call.node().operand(0);
  const SymbolicShape& shape = x->shape();
  const int64_t channels = shape.back().value();
  const int64_t groups = call.attributes().integer("groups");
  const std::string first = call.operand(0, AxisOrder::channels_first);
  if (groups == channels && call.rank() > 2) {
    call.result("InstanceNormalization", {first, call.operand_like_first(1), call.operand_like_first(2)},
                {{"epsilon", epsilon(call)}}, AxisOrder::channels_first);
    return;
  }
  std::vector<int64_t> back{0, channels};
  for (size_t axis = 1; axis + 1 < shape.size(); ++axis) {
    call.require(shape[axis].is_static(), "its input has the symbolic extent " + shape[axis].to_string());
    back.push_back(shape[axis].value());
  }
  const DataType type = x->data_type();
  const std::string grouped = call.add("Reshape", {first, call.integers({0, groups, -1})});
  const std::string normalized = call.add("InstanceNormalization",
                                          {grouped, call.constant(Tensor::full(type, {groups}, 1)),
                                           call.constant(Tensor::full(type, {groups}, 0))},
                                          {{"epsilon", epsilon(call)}});
  const std::string apart = call.add("Reshape", {normalized, call.integers(back)});
  const std::string scaled = call.add("Mul", {apart, per_channel(call, 1)});
  call.result("Add", {scaled, per_channel(call, 2)}, {}, AxisOrder::channels_first);
}

NodeWriter along_axis(const std::string& name, const std::string& type) {
  return {name, [type](WriteCall& call) {
            call.result(type, {call.operand(0)}, {{"axis", call.attributes().integer("axis")}});
          }};
}

const WriterRegistrations kRegistration{
    {"batch_norm_inference", write_batch_norm}, {"layer_norm", write_layer_norm},
    {"group_norm", write_group_norm},           along_axis("softmax", "Softmax"),
    along_axis("log_softmax", "LogSoftmax"),
};

}  // namespace
}  // namespace tessera::onnx
