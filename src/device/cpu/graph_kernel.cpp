#include "device/cpu/graph_kernel.h"

#include <algorithm>
#include <unordered_map>

#include "tessera/base/error.h"
#include "tessera/graph/operator.h"
#include "tessera/passes/pass.h"

#include "device/cpu/cluster_kernel.h"
#include "device/cpu/kernel_registry.h"

namespace tessera::cpu {
namespace {

constexpr int64_t kAlignment = 64;

std::unique_ptr<Graph> make_graph(const Node& node, const GraphRule& rule) {
  auto graph = std::make_unique<Graph>(node.operator_name());
  std::vector<Value*> inputs;
  for (const Value* input : node.inputs()) {
    inputs.push_back(graph->add_input(InputRole::input, fmt::format("x{}", inputs.size()), input->type()));
  }
  for (Value* output : rule(node, inputs))
    graph->add_output(fmt::format("y{}", graph->outputs().size()), output);
  const PassOptions options;
  for (const Pass& pass : pipeline(options)) {
    if (pass.name == "fuse_elementwise" || pass.name == "remove_dead_code") pass.run(*graph, options);
  }
  return graph;
}

class GraphKernel : public Kernel {
 public:
  GraphKernel(const KernelRequest& request, const GraphRule& rule) : graph_(make_graph(request.node, rule)) {
    for (const auto& input : graph_->inputs())
      places_[input.get()] = {Place::Kind::input, index_of(input->index())};
    for (size_t i = 0; i < graph_->outputs().size(); ++i) {
      place_output(graph_->outputs()[i].value, {Place::Kind::output, index_of(i)});
    }
    for (const auto& node : graph_->nodes()) add_node(*node);
    scratch_ = workspace_;
    workspace_ += inner_workspace_;
  }

  int64_t workspace_bytes() const override { return workspace_; }

  void run(const KernelArguments& arguments) override {
    for (Step& step : steps_) {
      for (size_t i = 0; i < step.sources.size(); ++i) step.inputs[i] = address(step.sources[i], arguments);
      for (size_t i = 0; i < step.targets.size(); ++i) step.outputs[i] = address(step.targets[i], arguments);
      step.kernel->run({step.inputs, step.outputs, static_cast<char*>(arguments.workspace) + scratch_});
    }
  }

 private:
  struct Place {
    enum class Kind { input, output, workspace, constant };
    Kind kind = Kind::workspace;
    int64_t offset = 0;            // or the number of the input or output
    const void* memory = nullptr;  // of a constant
  };
  struct Step {
    std::unique_ptr<Kernel> kernel;
    std::vector<Place> sources;
    std::vector<Place> targets;
    std::vector<const void*> inputs;
    std::vector<void*> outputs;
  };

  static int64_t index_of(size_t index) { return static_cast<int64_t>(index); }

  static void* address(const Place& place, const KernelArguments& arguments) {
    switch (place.kind) {
      case Place::Kind::input:
        return const_cast<void*>(arguments.inputs[static_cast<size_t>(place.offset)]);
      case Place::Kind::output:
        return arguments.outputs[static_cast<size_t>(place.offset)];
      case Place::Kind::constant:
        return const_cast<void*>(place.memory);
      case Place::Kind::workspace:
        break;
    }
    return static_cast<char*>(arguments.workspace) + place.offset;
  }

  // What a result reshapes is computed in the result's place.
  void place_output(const Value* value, const Place& place) {
    while (places_.emplace(value, place).second && value->producer() != nullptr &&
           value->producer()->operator_name() == "reshape") {
      value = value->producer()->input(0);
    }
  }

  void add_node(const Node& node) {
    if (node.operator_name() == "constant") {
      places_[node.output()] = {Place::Kind::constant, 0, node.attributes().tensor("value").raw()};
      return;
    }
    if (node.operator_name() == "reshape") {
      const Place& source = places_.at(node.input(0));
      const Place& target = places_.try_emplace(node.output(), source).first->second;
      if (source.kind == target.kind && source.offset == target.offset) return;
    }
    Step step;
    step.kernel = make_kernel(node);
    for (const Value* input : node.inputs()) step.sources.push_back(places_.at(input));
    for (const auto& output : node.outputs()) {
      if (!places_.contains(output.get())) {
        places_[output.get()] = {Place::Kind::workspace, workspace_};
        workspace_ += (output->type().bytes() + kAlignment - 1) / kAlignment * kAlignment;
      }
      step.targets.push_back(places_.at(output.get()));
    }
    step.inputs.resize(step.sources.size());
    step.outputs.resize(step.targets.size());
    inner_workspace_ = std::max(inner_workspace_, step.kernel->workspace_bytes());
    steps_.push_back(std::move(step));
  }

  static std::unique_ptr<Kernel> make_kernel(const Node& node) {
    const CpuKernels* kernels = find_kernels(kernel_key(node));
    require(kernels != nullptr, ErrorCode::internal, "'{}' is no part of a small graph",
            node.operator_name());
    const KernelRequest request{.node = node,
                                .frozen_inputs = std::vector<bool>(node.inputs().size(), false)};
    for (const KernelCandidate& candidate : kernels->candidates(node)) {
      if (candidate.refusal(request).empty()) return candidate.create(request);
    }
    fail(ErrorCode::unsupported, "no loop takes '{}'", print(node));
  }

  std::unique_ptr<Graph> graph_;
  std::unordered_map<const Value*, Place> places_;
  std::vector<Step> steps_;
  int64_t workspace_ = 0;
  int64_t inner_workspace_ = 0;
  int64_t scratch_ = 0;  // where the kernels' own workspace begins
};

}  // namespace

GraphRegistration::GraphRegistration(const std::string& key, GraphRule rule) {
  CpuKernelRegistration({.key = key, .candidates = [key, rule = std::move(rule)](const Node&) {
                           KernelCandidate candidate;
                           candidate.name = "loops." + key;
                           candidate.refusal = [](const KernelRequest&) { return std::string(); };
                           candidate.create = [rule](const KernelRequest& request) {
                             return std::make_unique<GraphKernel>(request, rule);
                           };
                           return std::vector<KernelCandidate>{std::move(candidate)};
                         }});
}

}  // namespace tessera::cpu
