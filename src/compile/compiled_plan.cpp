#include "compile/compiled_plan.h"

#include <iterator>

#include "tessera/base/error.h"
#include "tessera/base/text.h"

#include "compile/communication_kernel.h"
#include "compile/lane_check.h"
#include "compile/planned_steps.h"

namespace tessera {

void CompiledPlan::end_phase(const char* name) {
  const Clock::time_point begin = phases.back().time.end;
  phases.push_back({name, {begin, Clock::now()}});
}

CompiledPlan compile_plan(const Graph& graph, Device& device, const CompileOptions& options) {
  const auto begin = Clock::now();
  const std::set<std::string> symbols = free_symbols(graph);
  require(symbols.empty(), ErrorCode::invalid_argument,
          "graph '{}' cannot be compiled while {} {} no number: specialize it", graph.name(),
          fmt::join(symbols, ", "), symbols.size() == 1 ? "has" : "have");
  CompiledPlan plan;
  plan.options = options;
  // Fused nodes would hide which of their members made a NaN.
  if (options.check_finite) plan.options.passes.fuse = false;
  plan.graph = graph.clone();
  connect_groups(*plan.graph, device, plan.options);
  if (!options.kernels.has_value()) {
    plan.passes =
        run_pipeline(*plan.graph, pipeline(plan.options.passes),
                     {plan.options.passes, pass_target(*plan.graph, device, plan.options)}, options.pipeline);
  }
  plan.phases.push_back({"passes", {begin, Clock::now()}});
  // Elsewhere a copy is a launch, which takes longer than so few bytes.
  constexpr int64_t kBytesOfALaunch = int64_t{64} << 10;
  const StorageOptions storage{.reuse = options.plan_memory,
                               .alignment = device.memory_alignment(),
                               .worth_a_copy = device.host_accessible() ? 0 : kBytesOfALaunch};
  PlannedSteps planned = plan_steps(*plan.graph, device, plan.options, storage);
  plan.schedule = std::move(planned.schedule);
  plan.once = std::move(planned.once);
  plan.steps = std::move(planned.every_run);
  plan.reports = std::move(planned.reports);
  plan.replaced = std::move(planned.replaced);
  std::move(planned.passes.begin(), planned.passes.end(), std::back_inserter(plan.passes));
  plan.groups = groups_of(plan.schedule.on_lane, plan.options);
  plan.lanes = plan_lanes(*plan.graph, plan.schedule, planned.views);
  for (size_t step = 0; step < plan.steps.size(); ++step)
    plan.reports[plan.once.size() + step].lane = plan.lanes.describe(step, plan.schedule);
  plan.end_phase("schedule and choose kernels");
  plan.storage = plan_storage(*plan.graph, plan.schedule, planned.views, plan.lanes,
                              kernel_pointers(plan.steps), storage);
  verify(plan.lanes, plan.schedule, planned.views, plan.storage);
  return plan;
}

}  // namespace tessera
