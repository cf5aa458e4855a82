// From a graph to the messages of a model.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include <onnx/onnx-ml.pb.h>

#include "tessera/base/registry.h"
#include "tessera/graph/operator.h"

#include "onnx/axis_order.h"

namespace tessera::onnx {

// The format's convolutions want channels before space, where graphs have them last. A value is written in
// the order in which it comes about and transposed only for those who want the other one.
enum class AxisOrder : uint8_t { as_is, channels_first };

class GraphWriter {
 public:
  GraphWriter(const Graph& graph, const std::map<std::string, Tensor>& weights, ::onnx::GraphProto& proto)
      : graph_(graph), weights_(weights), proto_(proto) {}

  // Throws as save().
  void write();

  // What initializers hold, which whoever saves them puts into their messages or beside them.
  struct Contents {
    ::onnx::TensorProto* initializer;
    Tensor tensor;
  };
  const std::vector<Contents>& contents() const { return contents_; }

  // The name of a value in that order; a transpose is added where it is there in the other one alone.
  std::string name(const Value* value, AxisOrder order = AxisOrder::as_is);
  // The same of a value with its axes permuted.
  std::string transposed_name(const Value* value, const std::vector<int64_t>& permutation);
  // Whether it takes no transpose.
  bool is_there(const Value* value, AxisOrder order) const;
  // What is known now already, or null: variables, constants, what is made of shapes alone, and what is made
  // of all these without being larger, such as weights in a narrower type.
  const Tensor* known(const Value* value);

  std::string add_initializer(const std::string& name, const Tensor& tensor);
  // An int64 tensor of one axis that holds the extents; those that are symbols are read off the inputs.
  std::string add_shape(const Node& node, const SymbolicShape& shape);
  std::string add_input(const std::string& wanted_name, const TensorType& type, const std::string& meaning);
  // Appends a node of the format with so many results and returns their names. An operand "" is left out.
  std::vector<std::string> add_node(const std::string& type, const std::vector<std::string>& operands,
                                    const Attributes& attributes, const std::vector<std::string>& results);
  std::string unique_name(const std::string& wanted);
  // The name under which the value is to be written in that order.
  std::string name_to_be(const Value* value, AxisOrder order);
  void set_name(const Value* value, AxisOrder order, const std::string& name);

 private:
  void declare_inputs();
  void write_outputs();
  void write_node(const Node& node);
  std::string add_extent(const Node& node, const Dimension& extent);
  const Tensor* fold(const Node& node, const Value* value);

  const Graph& graph_;
  const std::map<std::string, Tensor>& weights_;
  ::onnx::GraphProto& proto_;
  std::set<std::string> taken_;
  std::map<std::pair<const Value*, AxisOrder>, std::string> names_;
  std::unordered_map<const Value*, std::string> output_names_;
  std::unordered_map<const Value*, Tensor> known_;
  std::map<std::string, std::string> extents_;  // names of extents that are read off inputs
  std::vector<Contents> contents_;
};

// One node while it is written.
class WriteCall {
 public:
  WriteCall(GraphWriter& writer, const Node& node) : writer_(writer), node_(node) {}

  const Node& node() const { return node_; }
  const Attributes& attributes() const { return node_.attributes(); }
  GraphWriter& writer() { return writer_; }
  int64_t rank() const { return node_.output()->type().rank(); }  // of the first result
  // By its number in OperatorSchema::inputs, which must be there.
  std::string operand(size_t number, AxisOrder order = AxisOrder::as_is) {
    return writer_.name(node_.operand(number), order);
  }
  // The operand, cast where it has another type than the first.
  std::string operand_like_first(size_t number);

  std::string constant(const Tensor& tensor);
  std::string integers(const std::vector<int64_t>& values);  // int64 [n]
  std::string counted(const std::string& extent);  // int64 [n]: 0, 1, ..., where an int64 [1] holds n
  // The attributes of these names, one after the other: the format's pads.
  std::vector<int64_t> both(const std::string& low, const std::string& high) const;
  // An axis from the start, of one that may count from the end.
  static int64_t from_start(int64_t axis, int64_t rank) { return axis < 0 ? axis + rank : axis; }
  // A node between the operands and the result.
  std::string add(const std::string& type, const std::vector<std::string>& operands,
                  const Attributes& attributes = {});
  // The node that gives the first result, in that order.
  void result(const std::string& type, const std::vector<std::string>& operands,
              const Attributes& attributes = {}, AxisOrder order = AxisOrder::as_is);
  // In which an operator that works in either order takes the fewest transposes.
  AxisOrder cheapest_order();
  // An operand that broadcasts against the first result in that order.
  std::string broadcast_operand(size_t place, AxisOrder order);

  // Throws Error(unsupported) naming the node unless the condition holds.
  void require(bool condition, const std::string& what) const;

 private:
  GraphWriter& writer_;
  const Node& node_;
};

struct NodeWriter {
  std::string name;  // of the graph's operator
  std::function<void(WriteCall& call)> write;
};

Registry<NodeWriter>& node_writers();

// Each writer of a file: WriterRegistrations kRegistration{{"relu", write_relu}, ...};
struct WriterRegistrations {
  WriterRegistrations(std::initializer_list<NodeWriter> writers) {
    for (const NodeWriter& writer : writers) node_writers().add(writer);
  }
};

}  // namespace tessera::onnx
