#include "compile/step.h"

#include "tessera/base/progress.h"
#include "tessera/graph/operator.h"

#include "compile/communication_kernel.h"
#include "compile/kernel_choice.h"
#include "compile/kernel_failure.h"

namespace tessera {
namespace {

// Chooses kernels in the order of the questions.
class StepMaker {
 public:
  StepMaker(const Views& views, Device& device, const std::vector<KernelQuestion>& questions)
      : views_(views), device_(device), questions_(questions), ahead_(device, questions) {}

  Step make(const Node& node, std::vector<NodeReport>& reports) {
    Step step;
    step.node = &node;
    if (views_.is_alias(node)) {
      reports.push_back({.name = node.name(),
                         .operator_name = node.operator_name(),
                         .kernel = "alias",
                         .memory = views_.describe(node),
                         .candidates = {}});
      return step;
    }
    const KernelQuestion& question = questions_.at(next_);
    ChosenKernel choice = choose_kernel(question, next_++, ahead_, device_);
    step.kernel = std::move(choice.kernel);
    step.kernel_name = choice.report.kernel;
    reports.push_back(std::move(choice.report));
    return step;
  }

 private:
  const Views& views_;
  Device& device_;
  const std::vector<KernelQuestion>& questions_;
  size_t next_ = 0;
  CandidatesAhead ahead_;
};

}  // namespace

void Step::run(Queue& queue) {
  if (kernel == nullptr) return;
  naming_kernel(kernel_name, *node, [&] { kernel->run({inputs, outputs, workspace, queue, packed}); });
  note_progress();
}

std::vector<Kernel*> kernel_pointers(const std::vector<Step>& steps) {
  std::vector<Kernel*> pointers;
  for (const Step& step : steps) pointers.push_back(step.kernel.get());
  return pointers;
}

KernelRequest request_for(const Node& node, const Schedule& schedule, const CompileOptions& options) {
  KernelRequest request{.node = node,
                        .frozen_inputs = {},
                        .deterministic = options.passes.deterministic,
                        .tf32 = options.passes.precision == Precision::tf32 && tf32_allowed()};
  if (node.schema().operator_class == OperatorClass::communication)
    request.communicator = group_of(node, options);
  // For what runs once nothing is packed.
  const bool runs_once = schedule.settled.contains(node.output());
  for (const Value* input : node.inputs())
    request.frozen_inputs.push_back(!runs_once && schedule.settled.contains(input));
  return request;
}

std::tuple<std::vector<Step>, std::vector<Step>, std::vector<NodeReport>> choose_steps(
    const Schedule& schedule, const Views& views, Device& device, const CompileOptions& options) {
  std::unique_ptr<Tuner> tuner;
  if (options.tune || !options.tuning_file.empty())
    tuner = std::make_unique<Tuner>(device, options.tuning_file, options.tune);
  std::vector<KernelQuestion> questions;
  for (const auto* nodes : {&schedule.once, &schedule.every_run}) {
    for (const Node* node : *nodes) {
      if (views.is_alias(*node)) continue;
      const bool tuned = tuner != nullptr && nodes == &schedule.every_run && device.tunable(*node);
      questions.push_back({request_for(*node, schedule, options), tuned ? tuner.get() : nullptr});
    }
  }
  StepMaker maker(views, device, questions);
  std::vector<Step> once;
  std::vector<Step> every_run;
  std::vector<NodeReport> reports;
  for (const Node* node : schedule.once) {
    once.push_back(maker.make(*node, reports));
    reports.back().once = true;
  }
  for (const Node* node : schedule.every_run) every_run.push_back(maker.make(*node, reports));
  if (tuner != nullptr) tuner->save();
  return {std::move(once), std::move(every_run), std::move(reports)};
}

}  // namespace tessera
