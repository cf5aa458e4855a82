// Reductions, extremes' places and pooling.
#include <algorithm>

#include "onnx/graph_writer.h"

namespace tessera::onnx {
namespace {

// Of the operand, from the start; none given: all.
std::vector<int64_t> reduced_axes(const WriteCall& call, int64_t rank) {
  std::vector<int64_t> axes = call.attributes().integers("axes");
  for (int64_t& axis : axes) axis = WriteCall::from_start(axis, rank);
  if (axes.empty()) {
    for (int64_t axis = 0; axis < rank; ++axis) axes.push_back(axis);
  }
  return axes;
}

// Whether what is left of the axes stands in the same order either way: all of space is reduced, or the
// channels.
bool leaves_order(const std::vector<int64_t>& axes, int64_t rank) {
  const auto reduces = [&](int64_t axis) { return std::find(axes.begin(), axes.end(), axis) != axes.end(); };
  if (reduces(rank - 1)) return true;
  for (int64_t axis = 1; axis + 1 < rank; ++axis) {
    if (!reduces(axis)) return false;
  }
  return true;
}

NodeWriter reduction(const std::string& name, const std::string& type) {
  return {name, [type](WriteCall& call) {
            const Value* x = call.node().input(0);
            const int64_t rank = x->type().rank();
            std::vector<int64_t> axes = reduced_axes(call, rank);
            const bool keeps = call.attributes().boolean("keep_dimensions");
            const bool first = rank > 2 && call.writer().is_there(x, AxisOrder::channels_first) &&
                               (keeps || leaves_order(axes, rank));
            if (first) {
              for (int64_t& axis : axes) axis = channels_first_axis(axis, rank);
              std::sort(axes.begin(), axes.end());
            }
            const AxisOrder order = first ? AxisOrder::channels_first : AxisOrder::as_is;
            std::vector<std::string> operands{call.operand(0, order)};
            if (!axes.empty()) operands.push_back(call.integers(axes));
            call.result(type, operands, {{"keepdims", keeps}}, keeps ? order : AxisOrder::as_is);
          }};
}

// Places are int64 in the format.
void write_argmax(WriteCall& call) {
  const std::string place = call.add("ArgMax", {call.operand(0)},
                                     {{"axis", call.attributes().integer("axis")},
                                      {"keepdims", call.attributes().boolean("keep_dimensions")}});
  call.result("Cast", {place}, {{"to", call.node().output()->data_type()}});
}

void write_cumulative_sum(WriteCall& call) {
  const Tensor axis = Tensor::from<int64_t>({}, {call.attributes().integer("axis")});
  call.result("CumSum", {call.operand(0), call.constant(axis)},
              {{"exclusive", call.attributes().boolean("exclusive")},
               {"reverse", call.attributes().boolean("reverse")}});
}

void write_top_k(WriteCall& call) {
  GraphWriter& writer = call.writer();
  const Value* values = call.node().output(0);
  const Value* places = call.node().output(1);
  const std::string k = call.integers({call.attributes().integer("k")});
  const std::vector<std::string> names =
      writer.add_node("TopK", {call.operand(0), k}, {{"axis", -1}},
                      {writer.name_to_be(values, AxisOrder::as_is), writer.unique_name(places->name())});
  writer.set_name(values, AxisOrder::as_is, names[0]);
  const std::string name = writer.name_to_be(places, AxisOrder::as_is);
  writer.add_node("Cast", {names[1]}, {{"to", places->data_type()}}, {name});
  writer.set_name(places, AxisOrder::as_is, name);
}

Attributes pool_attributes(const WriteCall& call) {
  return {{"kernel_shape", call.attributes().integers("window")},
          {"strides", call.attributes().integers("strides")},
          {"pads", call.both("padding_low", "padding_high")}};
}

void write_max_pool(WriteCall& call) {
  call.result("MaxPool", {call.operand(0, AxisOrder::channels_first)}, pool_attributes(call),
              AxisOrder::channels_first);
}

void write_average_pool(WriteCall& call) {
  Attributes attributes = pool_attributes(call);
  attributes.set("count_include_pad", call.attributes().boolean("count_padding"));
  call.result("AveragePool", {call.operand(0, AxisOrder::channels_first)}, attributes,
              AxisOrder::channels_first);
}

const WriterRegistrations kRegistration{
    reduction("reduce_sum", "ReduceSum"),
    reduction("reduce_mean", "ReduceMean"),
    reduction("reduce_max", "ReduceMax"),
    reduction("reduce_min", "ReduceMin"),
    reduction("reduce_product", "ReduceProd"),
    {"argmax", write_argmax},
    {"cumulative_sum", write_cumulative_sum},
    {"top_k", write_top_k},
    {"max_pool", write_max_pool},
    {"average_pool", write_average_pool},
};

}  // namespace
}  // namespace tessera::onnx
