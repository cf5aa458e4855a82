#include "cli/plan_subject.h"

#include <algorithm>

#include <fmt/ranges.h>

#include "tessera/base/error.h"
#include "tessera/infer/plan.h"

namespace tessera::cli {
namespace {

using infer::Plan;
using infer::PlanSize;

class PlanSubject : public Subject {
 public:
  explicit PlanSubject(const ModelArguments& arguments)
      : Subject(arguments), plan_(Plan::open(arguments.model)) {}

  std::string samples() const override { return "samples"; }

  CompiledModel compile(train::StepKind /*kind*/, std::shared_ptr<Workspace> workspace) const override {
    check_options();
    const PlanSize& size = chosen_size();
    CompiledModel result;
    result.batch = size.batch;
    result.step.graph = size.graph->clone();
    for (const auto& input : size.graph->inputs()) {
      if (input->role() != InputRole::input) result.weights[input->name()] = plan_.weight(input->name());
    }
    const std::string& device = arguments().device;
    open_device(result, workspace, device == "auto" ? plan_.description().device.name : device);
    plan_.check(result.device->description());
    result.executable = plan_.compile(size, result.device, std::move(workspace));
    return result;
  }

  Feeds inputs(const CompiledModel& compiled) const override {
    // 0 and 1 are indices into whatever a network looks up.
    return synthetic_inputs(*compiled.step.graph, 2);
  }

 private:
  void check_options() const {
    const ModelArguments& given = arguments();
    const std::string_view precision = to_string(plan_.description().precision);
    require(!given.train, ErrorCode::invalid_argument, "--train: '{}' is a network for inference",
            given.model);
    require(!given.tune && given.tuning_file.empty() && given.disabled_passes.empty() &&
                !given.nondeterministic && given.sizes.empty() &&
                (given.precision == ModelArguments().precision || given.precision == precision),
            ErrorCode::invalid_argument,
            "'{}' is compiled already, in {}: --precision, --size, --tune, --tuning-file, --disable-pass and "
            "--nondeterministic are of `tessera build`",
            given.model, precision);
  }

  const PlanSize& chosen_size() const {
    const std::vector<PlanSize>& sizes = plan_.description().sizes;
    if (!arguments().batch_given) return sizes.back();
    std::vector<int64_t> batches;
    for (const PlanSize& size : sizes) {
      if (size.batch == arguments().batch) return size;
      batches.push_back(size.batch);
    }
    fail(ErrorCode::invalid_argument, "--batch: '{}' has {}, not {}", arguments().model,
         fmt::join(batches, ", "), arguments().batch);
  }

  Plan plan_;
};

}  // namespace

bool is_plan_file(const std::string& model) {
  return model.ends_with(".plan");
}

std::unique_ptr<Subject> open_plan(const ModelArguments& arguments) {
  return std::make_unique<PlanSubject>(arguments);
}

}  // namespace tessera::cli
