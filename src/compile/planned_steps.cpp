#include "compile/planned_steps.h"

#include <memory>
#include <unordered_map>
#include <utility>

#include "tessera/base/error.h"
#include "tessera/passes/decompose.h"
#include "tessera/passes/run_pass.h"

#include "compile/communication_kernel.h"
#include "compile/kernel_choice.h"

namespace tessera {
namespace {

class StepPlanner {
 public:
  StepPlanner(Graph& graph, Device& device, const CompileOptions& options, const StorageOptions& storage)
      : graph_(graph), device_(device), options_(options), storage_(storage) {
    if (!options.kernels.has_value() && (options.tune || !options.tuning_file.empty()))
      tuner_ = std::make_unique<Tuner>(device, options.tuning_file, options.tune);
  }

  PlannedSteps plan() {
    do {
      planned_.schedule = schedule(graph_, options_.passes.frozen, lane_of(device_, options_));
      planned_.views = find_views(graph_, planned_.schedule, storage_);
      choose();
    } while (expand());
    if (tuner_ != nullptr) tuner_->save();
    for (const Node* node : planned_.schedule.once) {
      planned_.once.push_back(step_of(*node));
      planned_.reports.back().once = true;
    }
    for (const Node* node : planned_.schedule.every_run) planned_.every_run.push_back(step_of(*node));
    return std::move(planned_);
  }

 private:
  // For all nodes that have none yet, in the order of the schedule.
  void choose() {
    std::vector<KernelQuestion> questions;
    for (const auto* nodes : {&planned_.schedule.once, &planned_.schedule.every_run}) {
      for (const Node* node : *nodes) {
        if (planned_.views.is_alias(*node) || chosen_.contains(node)) continue;
        const bool tuned =
            tuner_ != nullptr && nodes == &planned_.schedule.every_run && device_.tunable(*node);
        questions.push_back({.request = request_for(*node, planned_.schedule, options_),
                             .tuner = tuned ? tuner_.get() : nullptr,
                             .kernel = kernel_of(*node),
                             .expands = !options_.kernels.has_value() &&
                                        !options_.pipeline.disabled.contains(kExpandKernels)});
      }
    }
    CandidatesAhead ahead(device_, questions);
    for (size_t i = 0; i < questions.size(); ++i)
      chosen_.emplace(&questions[i].request.node, choose_kernel(questions[i], i, ahead, device_));
  }

  // The one that the options name; null where they leave the choice.
  const std::string* kernel_of(const Node& node) const {
    if (!options_.kernels.has_value()) return nullptr;
    const auto named = options_.kernels->find(node.name());
    require(named != options_.kernels->end(), ErrorCode::invalid_argument,
            "graph '{}': no kernel is named for '{}'", graph_.name(), node.name());
    return &named->second;
  }

  // Whether there is anything to choose anew.
  bool expand() {
    PassReport report =
        run_pass(graph_, expand_kernels_, {.options = options_.passes, .target = {}}, options_.pipeline);
    if (!report.changed) return false;
    planned_.passes.push_back(std::move(report));
    return true;
  }

  bool put_graphs_in_place() {
    std::vector<Node*> composites;
    for (const auto& node : graph_.nodes()) {
      const auto choice = chosen_.find(node.get());
      if (choice != chosen_.end() && choice->second.graph != nullptr) composites.push_back(node.get());
    }
    for (Node* node : composites) {
      // Another node may come to lie at its address.
      ChosenKernel choice = std::move(chosen_.extract(node).mapped());
      planned_.replaced.push_back(std::move(choice.report));
      tessera::expand(graph_, node, *choice.graph);
    }
    return !composites.empty();
  }

  Step step_of(const Node& node) {
    Step step;
    step.node = &node;
    if (planned_.views.is_alias(node)) {
      planned_.reports.push_back({.name = node.name(),
                                  .operator_name = node.operator_name(),
                                  .kernel = "alias",
                                  .memory = planned_.views.describe(node),
                                  .candidates = {}});
      return step;
    }
    ChosenKernel& choice = chosen_.at(&node);
    step.kernel = std::move(choice.kernel);
    step.kernel_name = choice.report.kernel;
    planned_.reports.push_back(std::move(choice.report));
    return step;
  }

  Graph& graph_;
  Device& device_;
  const CompileOptions& options_;
  const StorageOptions& storage_;
  std::unique_ptr<Tuner> tuner_;
  std::unordered_map<const Node*, ChosenKernel> chosen_;
  PlannedSteps planned_;
  const Pass expand_kernels_{.name = kExpandKernels,
                             .documentation = "what the device composes of other kernels, in its place",
                             .run = [this](Graph&, const PassContext&) { return put_graphs_in_place(); }};
};

}  // namespace

PlannedSteps plan_steps(Graph& graph, Device& device, const CompileOptions& options,
                        const StorageOptions& storage) {
  return StepPlanner(graph, device, options, storage).plan();
}

}  // namespace tessera
