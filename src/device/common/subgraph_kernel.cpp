#include "tessera/device/common/subgraph_kernel.h"

#include <algorithm>
#include <set>
#include <unordered_map>

#include "tessera/base/error.h"
#include "tessera/device/common/kernel_table.h"
#include "tessera/device/common/refusal.h"
#include "tessera/device/common/workspace_layout.h"
#include "tessera/graph/operator.h"

namespace tessera::backend {
namespace {

class SubgraphKernel : public Kernel {
 public:
  SubgraphKernel(std::shared_ptr<const Graph> graph, const KernelRequest& request,
                 const CandidatesOf& candidates)
      : graph_(std::move(graph)) {
    for (const auto& input : graph_->inputs())
      places_[input.get()] = {Place::Kind::input, input->index(), {}};
    for (size_t i = 0; i < graph_->outputs().size(); ++i) {
      place_output(graph_->outputs()[i].value, {Place::Kind::output, i, {}});
    }
    for (const auto& node : graph_->nodes()) add_node(*node, request, candidates);
    for (size_t i = 0; i < graph_->outputs().size(); ++i) add_copy(i, request, candidates);
    scratch_ = workspace_.book<std::byte>(inner_workspace_);
  }

  int64_t workspace_bytes() const override { return workspace_.bytes(); }
  bool recordable() const override {
    return std::all_of(steps_.begin(), steps_.end(),
                       [](const Step& step) { return step.kernel->recordable(); });
  }

  // Those of each step, one after the other; what is frozen is an input, seen as it is or its first rows.
  std::vector<Packing> packings() const override {
    std::vector<Packing> result;
    for (const Step& step : steps_) {
      for (Packing packing : step.kernel->packings()) {
        packing.input = step.sources[packing.input].index;
        result.push_back(std::move(packing));
      }
    }
    return result;
  }
  void pack(size_t index, const void* memory, void* packed) const override {
    const auto after = std::find_if(steps_.begin(), steps_.end(),
                                    [&](const Step& step) { return step.first_packing > index; });
    const Step& step = *std::prev(after);
    step.kernel->pack(index - step.first_packing, memory, packed);
  }

  void run(const KernelArguments& arguments) override {
    void* scratch = scratch_.in(arguments.workspace);
    for (Step& step : steps_) {
      for (size_t i = 0; i < step.sources.size(); ++i) step.inputs[i] = address(step.sources[i], arguments);
      for (size_t i = 0; i < step.targets.size(); ++i) step.outputs[i] = address(step.targets[i], arguments);
      step.kernel->run({step.inputs, step.outputs, scratch, arguments.queue,
                        arguments.packed.subspan(step.first_packing, step.packing_count)});
    }
  }

 private:
  struct Place {
    enum class Kind { input, output, workspace };
    Kind kind = Kind::workspace;
    size_t index = 0;                 // of the input or output
    WorkspaceArray<std::byte> array;  // in the workspace
    bool operator==(const Place&) const = default;
  };
  struct Step {
    std::unique_ptr<Kernel> kernel;
    std::vector<Place> sources;
    std::vector<Place> targets;
    std::vector<const void*> inputs;
    std::vector<void*> outputs;
    size_t first_packing = 0;  // in packings()
    size_t packing_count = 0;
  };

  static void* address(const Place& place, const KernelArguments& arguments) {
    if (place.kind == Place::Kind::input) return const_cast<void*>(arguments.inputs[place.index]);
    if (place.kind == Place::Kind::output) return arguments.outputs[place.index];
    return place.array.in(arguments.workspace);
  }

  // What a result reshapes is computed in the result's place.
  void place_output(const Value* value, const Place& place) {
    while (places_.emplace(value, place).second && value->producer() != nullptr &&
           value->producer()->schema().traits.view) {
      value = value->producer()->input(0);
    }
  }

  // Whether the output is its input's memory from the start on: a reshape, or the first rows.
  static bool is_prefix(const Node& node) {
    const OperatorSchema& schema = node.schema();
    if (schema.result_offsets == nullptr || node.outputs().size() != 1) return schema.traits.view;
    const std::vector<int64_t> offsets = schema.result_offsets(node);
    return !offsets.empty() && offsets[0] == 0;
  }

  void add_node(const Node& node, const KernelRequest& request, const CandidatesOf& candidates) {
    if (is_prefix(node)) {
      const Place source = places_.at(node.input(0));
      if (places_.try_emplace(node.output(), source).first->second == source) return;
    }
    Step step;
    KernelRequest inner{
        .node = node, .frozen_inputs = {}, .deterministic = request.deterministic, .tf32 = request.tf32};
    for (const Value* input : node.inputs()) {
      const Place& place = places_.at(input);
      step.sources.push_back(place);
      inner.frozen_inputs.push_back(place.kind == Place::Kind::input &&
                                    place.index < request.frozen_inputs.size() &&
                                    request.frozen_inputs[place.index]);
    }
    for (const auto& output : node.outputs()) {
      const auto [place, added] = places_.try_emplace(output.get());
      if (added) place->second.array = workspace_.book<std::byte>(output->type().bytes());
      step.targets.push_back(place->second);
    }
    step.kernel = first_willing(inner, candidates);
    add_step(std::move(step));
  }

  // An output that is an input, or a value that is another output already, is copied at the end.
  void add_copy(size_t output, const KernelRequest& request, const CandidatesOf& candidates) {
    const Value& value = *graph_->outputs()[output].value;
    const Place target{Place::Kind::output, output, {}};
    if (places_.at(&value) == target) return;
    Value* source = copies_.add_input(InputRole::input, fmt::format("x{}", output), value.type());
    const Node& node = *copies_.add_node("reshape", {source}, {{"shape", value.shape()}});
    const KernelRequest inner{
        .node = node, .frozen_inputs = {false}, .deterministic = request.deterministic, .tf32 = request.tf32};
    add_step({.kernel = first_willing(inner, candidates),
              .sources = {places_.at(&value)},
              .targets = {target},
              .inputs = {},
              .outputs = {}});
  }

  void add_step(Step step) {
    step.inputs.resize(step.sources.size());
    step.outputs.resize(step.targets.size());
    step.first_packing = packing_count_;
    step.packing_count = step.kernel->packings().size();
    packing_count_ += step.packing_count;
    inner_workspace_ = std::max(inner_workspace_, step.kernel->workspace_bytes());
    steps_.push_back(std::move(step));
  }

  static std::unique_ptr<Kernel> first_willing(const KernelRequest& request, const CandidatesOf& candidates) {
    std::string refusals;
    for (const KernelCandidate& candidate : candidates(request.node)) {
      if (candidate.only_tuned) continue;
      const auto planned = candidate.plan(request);
      if (const auto* make = std::get_if<KernelMaker>(&planned)) return (*make)();
      refusals += fmt::format("\n  {}: {}", candidate.name, std::get<Refusal>(planned).reason);
    }
    fail(ErrorCode::unsupported, "no kernel takes '{}' inside{}", print(request.node), refusals);
  }

  std::shared_ptr<const Graph> graph_;
  Graph copies_;  // of its nodes, which kernels keep
  std::unordered_map<const Value*, Place> places_;
  std::vector<Step> steps_;
  WorkspaceLayout workspace_;
  int64_t inner_workspace_ = 0;
  size_t packing_count_ = 0;
  WorkspaceArray<std::byte> scratch_;  // the kernels' own workspace
};

std::shared_ptr<Graph> graph_of_rule(const Node& node, const GraphRule& rule, const PassTarget& target) {
  auto graph = std::make_shared<Graph>(node.operator_name());
  std::vector<Value*> inputs;
  for (const Value* input : node.inputs()) {
    inputs.push_back(graph->add_input(InputRole::input, fmt::format("x{}", inputs.size()), input->type()));
  }
  for (Value* output : rule(node, inputs))
    graph->add_output(fmt::format("y{}", graph->outputs().size()), output);
  static const std::set<std::string> wanted{"fuse_patterns", "expand_operators", "fuse_elementwise",
                                            "remove_dead_code"};
  for (const Pass& pass : pipeline({})) {
    if (wanted.contains(pass.name)) pass.run(*graph, {.options = {}, .target = target});
  }
  return graph;
}

}  // namespace

std::unique_ptr<Kernel> make_subgraph_kernel(std::shared_ptr<const Graph> graph, const KernelRequest& request,
                                             const CandidatesOf& candidates) {
  return std::make_unique<SubgraphKernel>(std::move(graph), request, candidates);
}

KernelCandidate unfused_candidate(const CandidatesOf& candidates) {
  // The node outlives its kernels, and so does its body.
  const auto body_of = [](const KernelRequest& request) {
    return std::shared_ptr<const Graph>(std::shared_ptr<void>(), request.node.body());
  };
  KernelCandidate candidate =
      checked_candidate("unfused", [candidates, body_of](const KernelRequest& request) -> KernelMaker {
        refuse_unless(request.node.body() != nullptr, "the node is not fused");
        return [candidates, body_of, &request] {
          return make_subgraph_kernel(body_of(request), request, candidates);
        };
      });
  candidate.rounds_between = true;
  candidate.graph = body_of;
  return candidate;
}

KernelCandidate rule_candidate(const std::string& name, const GraphRule& rule, const CandidatesOf& candidates,
                               const PassTarget& target,
                               const std::function<void(const KernelRequest& request)>& check) {
  const auto graph_of = [=](const KernelRequest& request) -> std::shared_ptr<const Graph> {
    return graph_of_rule(request.node, rule, target);
  };
  KernelCandidate candidate = checked_candidate(name, [=](const KernelRequest& request) -> KernelMaker {
    if (check) check(request);
    return [=, &request] { return make_subgraph_kernel(graph_of(request), request, candidates); };
  });
  candidate.rounds_between = true;
  candidate.graph = graph_of;
  return candidate;
}

}  // namespace tessera::backend
