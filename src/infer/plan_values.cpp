// What goes into a plan's graphs and comes out, over all sizes.
#include <algorithm>
#include <functional>

#include "tessera/base/error.h"
#include "tessera/infer/plan.h"
#include "tessera/passes/settled_values.h"

namespace tessera::infer {
namespace {

// The type over all sizes: one that is the same in all, or has their batches as its first extent.
TensorType common_type(const std::string& name, const std::vector<PlanSize>& sizes,
                       const std::vector<TensorType>& types) {
  TensorType common = types.front();
  const auto is_common = [&](const TensorType& type) { return type == common; };
  if (std::all_of(types.begin(), types.end(), is_common)) return common;
  bool follows = common.rank() > 0;
  for (size_t i = 0; i < sizes.size() && follows; ++i) {
    TensorType expected = types.front();
    expected.shape.front() = sizes[i].batch;
    follows = types[i] == expected;
  }
  require(follows, ErrorCode::invalid_argument,
          "'{}' is {} at batch {} and {} at batch {}: only first extents that are the batch may differ", name,
          to_string(types.front()), sizes.front().batch, to_string(types.back()), sizes.back().batch);
  common.shape.front() = Dimension::symbol("batch");
  return common;
}

using ValueOf = std::function<const Value*(const Graph& graph, const std::string& name)>;

std::vector<PlanValue> values_of(const std::vector<PlanSize>& sizes, const std::vector<std::string>& names,
                                 const ValueOf& value_of) {
  std::vector<PlanValue> values;
  for (const std::string& name : names) {
    std::vector<TensorType> types;
    for (const PlanSize& size : sizes) {
      const Value* value = value_of(*size.graph, name);
      require(value != nullptr, ErrorCode::invalid_argument, "'{}' is not there at batch {}", name,
              size.batch);
      types.push_back(value->type());
    }
    values.push_back({name, common_type(name, sizes, types)});
  }
  return values;
}

std::vector<std::string> input_names(const Graph& graph) {
  std::vector<std::string> names;
  for (const auto& input : graph.inputs()) {
    if (input->role() == InputRole::input) names.push_back(input->name());
  }
  return names;
}

const Value* output_of(const Graph& graph, const std::string& name) {
  for (const auto& output : graph.outputs()) {
    if (output.name == name) return output.value;
  }
  return nullptr;
}

// The rows of a batch are cut out of what has one for each; anything else could mix in those that fill it up.
void check_rows(const std::vector<PlanSize>& sizes, const std::vector<PlanValue>& outputs) {
  if (sizes.size() < 2) return;
  for (const PlanValue& output : outputs) {
    const bool is_same = is_settled(*output_of(*sizes.front().graph, output.name));
    require(
        is_same || !output.type.is_static(), ErrorCode::invalid_argument,
        "output '{}' is {} at every batch: of a network at several, each output has a row for each sample",
        output.name, to_string(output.type));
  }
}

}  // namespace

std::vector<PlanValue> inputs_of(const std::vector<PlanSize>& sizes) {
  const std::vector<std::string> names = input_names(*sizes.front().graph);
  for (const PlanSize& size : sizes) {
    require(input_names(*size.graph) == names, ErrorCode::invalid_argument,
            "batch {} has other inputs than batch {}", size.batch, sizes.front().batch);
  }
  return values_of(sizes, names,
                   [](const Graph& graph, const std::string& name) { return graph.find_input(name); });
}

std::vector<PlanValue> outputs_of(const std::vector<PlanSize>& sizes) {
  std::vector<std::string> names;
  for (const auto& output : sizes.front().graph->outputs()) names.push_back(output.name);
  std::vector<PlanValue> outputs = values_of(sizes, names, output_of);
  check_rows(sizes, outputs);
  return outputs;
}

}  // namespace tessera::infer
