#include "compile/prepared_graph.h"

#include <utility>

#include "tessera/base/error.h"
#include "tessera/graph/operator.h"

namespace tessera {
namespace {

void check_can_be_kept(const Graph& graph) {
  require(graph.updates().empty(), ErrorCode::unsupported,
          "graph '{}' cannot be kept as it was compiled: its runs change '{}'", graph.name(),
          graph.updates().empty() ? "" : graph.updates().front().state->name());
  for (const auto& node : graph.nodes()) {
    require(node->schema().operator_class != OperatorClass::communication, ErrorCode::unsupported,
            "graph '{}' cannot be kept as it was compiled: '{}' is of several ranks", graph.name(),
            node->name());
  }
}

// The part of the graph that runs every time.
class RunGraph {
 public:
  RunGraph(const Graph& source, const Schedule& schedule)
      : source_(source), schedule_(schedule), result_(std::make_unique<Graph>(source.name())) {}

  std::unique_ptr<Graph> make() {
    for (const auto& input : source_.inputs()) {
      if (input->role() == InputRole::input)
        mapping_[input.get()] = result_->add_input(InputRole::input, input->name(), input->type());
    }
    for (const Node* node : nodes()) {
      for (const Value* input : node->inputs()) add_if_settled(*input);
    }
    for (const auto& output : source_.outputs()) add_if_settled(*output.value);
    for (const Node* node : nodes()) copy_node(*node, *result_, mapping_);
    for (const auto& output : source_.outputs()) result_->add_output(output.name, mapping_.at(output.value));
    verify(*result_);
    return std::move(result_);
  }

  // Of the source; each is a constant of the same name.
  const std::vector<const Value*>& settled() const { return settled_; }

 private:
  // In the graph's own order: what is read off the schedule again comes out the same.
  std::vector<const Node*> nodes() const {
    std::vector<const Node*> nodes;
    for (const auto& node : source_.nodes()) {
      if (!schedule_.settled.contains(node->output())) nodes.push_back(node.get());
    }
    return nodes;
  }

  void add_if_settled(const Value& value) {
    if (!schedule_.settled.contains(&value) || mapping_.contains(&value)) return;
    mapping_[&value] = result_->add_input(InputRole::constant, value.name(), value.type());
    settled_.push_back(&value);
  }

  const Graph& source_;
  const Schedule& schedule_;
  std::unique_ptr<Graph> result_;
  ValueMapping mapping_;
  std::vector<const Value*> settled_;
};

void add_kernels(const std::vector<Step>& steps, KernelNames& kernels) {
  for (const Step& step : steps) {
    if (!step.kernel_name.empty()) kernels[step.node->name()] = step.kernel_name;
  }
}

}  // namespace

PreparedGraph prepare_graph(const CompiledPlan& plan, Device& device,
                            const std::function<const void*(const Value& settled)>& memory) {
  check_can_be_kept(*plan.graph);
  PreparedGraph prepared;
  add_kernels(plan.steps, prepared.kernels);
  if (!memory) {
    add_kernels(plan.once, prepared.kernels);
    prepared.graph = plan.graph->clone();
    return prepared;
  }
  RunGraph runs(*plan.graph, plan.schedule);
  prepared.graph = runs.make();
  for (const Value* value : runs.settled()) {
    Tensor contents(value->data_type(), value->type().static_shape());
    device.copy_to_host(contents.raw(), memory(*value), static_cast<int64_t>(contents.bytes()));
    prepared.constants.emplace(value->name(), std::move(contents));
  }
  return prepared;
}

}  // namespace tessera
