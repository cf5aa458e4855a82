#include "tessera/device/common/cluster_body.h"

#include <fmt/format.h>

#include "tessera/graph/operator.h"
#include "tessera/passes/decompose.h"

namespace tessera::backend {
namespace {

std::vector<int64_t> broadcast_strides(const Shape& own, const Shape& shape) {
  const std::vector<int64_t> dense = row_major_strides(own);
  std::vector<int64_t> strides(shape.size(), 0);
  const size_t offset = shape.size() - own.size();
  for (size_t axis = 0; axis < own.size(); ++axis) strides[offset + axis] = own[axis] == 1 ? 0 : dense[axis];
  return strides;
}

}  // namespace

std::vector<std::string> cluster_keys() {
  std::vector<std::string> keys = {"fused:cluster"};
  for (const OperatorSchema* schema : OperatorRegistry::instance().all()) {
    if (schema->operator_class == OperatorClass::elementwise || schema->traits.joins_clusters ||
        schema->traits.reduction != ReductionKind::none)
      keys.push_back(schema->name);
  }
  return keys;
}

std::unique_ptr<Graph> cluster_body(const Node& node) {
  std::unique_ptr<Graph> body;
  if (node.body() != nullptr) {
    body = node.body()->clone();
  } else {
    body = std::make_unique<Graph>(node.operator_name());
    // An operand that stands twice is two inputs: the kernel's arguments are counted by place.
    std::vector<Value*> operands;
    for (const Value* input : node.inputs()) {
      operands.push_back(
          body->add_input(InputRole::input, fmt::format("x{}", operands.size()), input->type()));
    }
    const Node* copy =
        body->add_node(node.operator_name(), node.operands(operands), node.attributes(), node.name());
    for (const auto& output : copy->outputs()) body->add_output(output->name(), output.get());
  }
  decompose_composites(*body);
  return body;
}

std::vector<bool> reduced_axes(const Node& reduction, size_t rank) {
  std::vector<bool> reduced(rank, false);
  const std::vector<int64_t>& axes = reduction.attributes().integers("axes");
  if (axes.empty()) reduced.assign(rank, true);
  for (int64_t axis : axes) {
    reduced[static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(rank) : axis)] = true;
  }
  return reduced;
}

bool broadcasts_to(const Shape& own, const Shape& shape) {
  if (own.size() > shape.size()) return false;
  const size_t offset = shape.size() - own.size();
  for (size_t axis = 0; axis < own.size(); ++axis) {
    if (own[axis] != 1 && own[axis] != shape[offset + axis]) return false;
  }
  return true;
}

int64_t IterationSpace::elements() const {
  int64_t count = 1;
  for (int64_t extent : extents) count *= extent;
  return count;
}

IterationSpace make_space(const Shape& shape, const std::vector<bool>& reduced,
                          const std::vector<Shape>& operands) {
  std::vector<std::vector<int64_t>> strides;
  for (const Shape& operand : operands) strides.push_back(broadcast_strides(operand, shape));
  IterationSpace space;
  space.strides.resize(operands.size());
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    if (shape[axis] == 1) continue;
    bool merges = !space.extents.empty() && space.reduced.back() == reduced[axis];
    for (size_t k = 0; k < operands.size() && merges; ++k) {
      merges = space.strides[k].back() == strides[k][axis] * shape[axis];
    }
    if (merges) {
      space.extents.back() *= shape[axis];
      for (size_t k = 0; k < operands.size(); ++k) space.strides[k].back() = strides[k][axis];
    } else {
      space.extents.push_back(shape[axis]);
      space.reduced.push_back(reduced[axis]);
      for (size_t k = 0; k < operands.size(); ++k) space.strides[k].push_back(strides[k][axis]);
    }
  }
  if (space.extents.empty()) {
    space.extents = {1};
    space.reduced = {false};
    for (auto& operand : space.strides) operand = {1};
  }
  return space;
}

}  // namespace tessera::backend
