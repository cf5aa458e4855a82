// What moves elements, looks them up or draws them.
#include <algorithm>

#include "onnx/graph_writer.h"

namespace tessera::onnx {
namespace {

// 0 stands for the operand's own extent at that place, -1 for what is left.
void write_reshape(WriteCall& call) {
  const SymbolicShape& from = call.node().input(0)->shape();
  const SymbolicShape& to = call.node().output()->shape();
  std::vector<int64_t> extents;
  int64_t symbols = 0;
  bool has_empty_axis = false;
  for (size_t axis = 0; axis < to.size(); ++axis) {
    if (to[axis].is_static()) {
      extents.push_back(to[axis].value());
      has_empty_axis = has_empty_axis || extents.back() == 0;
    } else if (axis < from.size() && from[axis] == to[axis]) {
      extents.push_back(0);
    } else {
      extents.push_back(-1);
      ++symbols;
    }
  }
  call.require(!has_empty_axis, "an axis of extent 0 means another one there");
  const std::string shape = symbols <= 1 ? call.integers(extents) : call.writer().add_shape(call.node(), to);
  call.result("Reshape", {call.operand(0), shape});
}

void write_transpose(WriteCall& call) {
  call.result("Transpose", {call.operand(0)}, {{"perm", call.attributes().integers("permutation")}});
}

// Extents of the operand's own are 1 in the shape, which then holds fewer symbols.
void write_broadcast(WriteCall& call) {
  const SymbolicShape& from = call.node().input(0)->shape();
  SymbolicShape to = call.node().output()->shape();
  for (size_t axis = 0; axis < from.size(); ++axis) {
    Dimension& extent = to[to.size() - from.size() + axis];
    if (extent == from[axis]) extent = 1;
  }
  call.result("Expand", {call.operand(0), call.writer().add_shape(call.node(), to)});
}

void write_concat(WriteCall& call) {
  const int64_t rank = call.rank();
  const AxisOrder order = call.cheapest_order();
  int64_t axis = WriteCall::from_start(call.attributes().integer("axis"), rank);
  if (order == AxisOrder::channels_first) axis = channels_first_axis(axis, rank);
  std::vector<std::string> operands;
  for (const Value* input : call.node().inputs()) operands.push_back(call.writer().name(input, order));
  call.result("Concat", operands, {{"axis", axis}}, order);
}

void write_split(WriteCall& call) {
  std::vector<std::string> names;
  for (const auto& output : call.node().outputs()) {
    names.push_back(call.writer().name_to_be(output.get(), AxisOrder::as_is));
    call.writer().set_name(output.get(), AxisOrder::as_is, names.back());
  }
  call.writer().add_node("Split", {call.operand(0), call.integers(call.attributes().integers("sizes"))},
                         {{"axis", call.attributes().integer("axis")}}, names);
}

void write_slice(WriteCall& call) {
  std::vector<int64_t> axes;
  for (int64_t axis = 0; axis < call.rank(); ++axis) axes.push_back(axis);
  call.result("Slice", {call.operand(0), call.integers(call.attributes().integers("starts")),
                        call.integers(call.attributes().integers("limits")), call.integers(axes),
                        call.integers(call.attributes().integers("strides"))});
}

void write_pad(WriteCall& call) {
  const std::vector<int64_t>& interior = call.attributes().integers("interior");
  call.require(std::all_of(interior.begin(), interior.end(), [](int64_t count) { return count == 0; }),
               "it pads between neighbors");
  const DataType type = call.node().output()->data_type();
  call.result("Pad", {call.operand(0), call.integers(call.both("low", "high")),
                      call.constant(Tensor::scalar(type, call.attributes().real("value")))});
}

void write_gather(WriteCall& call) {
  call.result("Gather", {call.operand(0), call.operand(1)}, {{"axis", call.attributes().integer("axis")}});
}

// By comparison: the format's own operator counts negative indices from the end.
void write_one_hot(WriteCall& call) {
  const Value* indices = call.node().input(0);
  const int64_t depth = call.attributes().integer("depth");
  Tensor classes(indices->data_type(), {depth});
  for (int64_t i = 0; i < depth; ++i) classes.set(i, static_cast<double>(i));
  const std::string column = call.add("Unsqueeze", {call.operand(0), call.integers({-1})});
  call.result("Cast", {call.add("Equal", {column, call.constant(classes)})},
              {{"to", call.attributes().data_type("type")}});
}

// 0, 1, ... along one axis, as many as it has.
void write_iota(WriteCall& call) {
  const SymbolicShape& shape = call.node().output()->shape();
  const int64_t rank = std::ssize(shape);
  const int64_t axis = WriteCall::from_start(call.attributes().integer("axis"), rank);
  const std::string extent = call.writer().add_shape(call.node(), {shape[static_cast<size_t>(axis)]});
  std::string counted = call.add("Cast", {call.counted(extent)}, {{"to", call.node().output()->data_type()}});
  std::vector<int64_t> column(static_cast<size_t>(rank), 1);
  column[static_cast<size_t>(axis)] = -1;
  counted = call.add("Reshape", {counted, call.integers(column)});
  SymbolicShape others = shape;
  others[static_cast<size_t>(axis)] = 1;
  call.result("Expand", {counted, call.writer().add_shape(call.node(), others)});
}

// The product of extents of which some are open.
void write_count_elements(WriteCall& call) {
  const std::string extents = call.writer().add_shape(call.node(), call.attributes().shape("shape"));
  const std::string count = call.add("ReduceProd", {extents}, {{"keepdims", false}});
  call.result("Cast", {count}, {{"to", call.node().output()->data_type()}});
}

// Whoever runs the model draws them: the format's own operators draw others in each program.
NodeWriter drawn(const std::string& name, const std::string& input, const std::string& meaning) {
  return {name, [=](WriteCall& call) {
            const Value* value = call.node().output();
            call.writer().set_name(value, AxisOrder::as_is,
                                   call.writer().add_input(input, value->type(), meaning));
          }};
}

const WriterRegistrations kRegistration{
    {"reshape", write_reshape},
    {"transpose", write_transpose},
    {"broadcast_to", write_broadcast},
    {"concat", write_concat},
    {"split", write_split},
    {"slice", write_slice},
    {"pad", write_pad},
    {"gather", write_gather},
    {"one_hot", write_one_hot},
    {"iota", write_iota},
    {"count_elements", write_count_elements},
    drawn("random_normal", "noise", "numbers of the standard normal distribution"),
    drawn("random_uniform", "uniform", "numbers that are uniform in [0, 1)"),
};

}  // namespace
}  // namespace tessera::onnx
