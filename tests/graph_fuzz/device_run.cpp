#include "graph_fuzz/device_run.h"

#include <fmt/format.h>

#include "tessera/base/random.h"
#include "tessera/compile/executable.h"

#include "graph_fuzz/configuration.h"
#include "graph_fuzz/random_graph.h"
#include "graph_fuzz/reference.h"

namespace tessera::testing {
namespace {

class Run {
 public:
  Run(const std::shared_ptr<Device>& device, const RandomGraph& own, const CompileOptions& options)
      : own_(own),
        executable_(compile(*own.graph, device, options)),
        variables_(std::make_shared<Variables>(device)) {
    verify(executable_->memory_plan());
    for (const auto& input : own.graph->inputs()) {
      if (input->role() == InputRole::input) inputs_[input->name()] = own.values.at(input->name());
    }
    set_variables();
    executable_->bind(variables_);
  }

  const Graph& lowered() const { return executable_->graph(); }

  // One run from the start.
  Results results() {
    if (!own_.graph->updates().empty()) set_variables();
    Results results = executable_->run(inputs_);
    for (const auto& [state, next] : own_.graph->updates())
      results["next " + state->name()] = variables_->get(state->name());
    return results;
  }

 private:
  void set_variables() {
    for (const auto& input : own_.graph->inputs()) {
      if (input->role() != InputRole::input) variables_->set(input->name(), own_.values.at(input->name()));
    }
  }

  const RandomGraph& own_;
  std::unique_ptr<Executable> executable_;
  std::shared_ptr<Variables> variables_;
  std::map<std::string, Tensor> inputs_;
};

std::string names_of_different(const Results& a, const Results& b) {
  std::string names;
  for (const auto& [name, tensor] : a) {
    if (!tensor.identical(b.at(name))) names += " " + name;
  }
  return names;
}

Tensor nudged_by_a_unit(const Tensor& tensor, uint64_t seed) {
  if (tensor.data_type() != DataType::fp32) return tensor;
  constexpr float kUnit = 1e-6F;
  const Random random(seed, 7);
  Tensor result = tensor.clone();
  uint64_t drawn = 0;
  for (float& x : result.data<float>()) x *= 1 + kUnit * static_cast<float>(2 * random.uniform(drawn++) - 1);
  return result;
}

std::string check_text(const Graph& graph) {
  verify(graph);
  const std::string text = print(graph);
  return print(*parse_graph(text)) == text ? "" : "the text is not the same when it was read again\n";
}

}  // namespace

std::string check_large_block_on(const std::shared_ptr<Device>& device, uint64_t seed) {
  const Configuration configuration = draw_configuration(seed);
  const RandomGraph own = random_block(seed, BlockSize::large, configuration.frozen);
  CompileOptions options = configuration.options();
  const Results results = Run(device, own, options).results();
  options.pipeline.disabled.clear();
  options.passes.fuse = false;
  options.passes.deterministic = true;
  const Results plain = Run(device, own, options).results();
  options.passes.precision = Precision::fp32;
  const auto exact = [&](const RandomGraph& graph) { return Run(Device::cpu(), graph, options).results(); };
  return difference_to_plain(results, plain, exact(own), configuration.precision, [&](uint64_t nudge) {
    RandomGraph nudged{own.graph->clone(), {}};
    for (const auto& [name, value] : own.values) nudged.values[name] = nudged_by_a_unit(value, nudge);
    return exact(nudged);
  });
}

std::string check_seed_on(const std::shared_ptr<Device>& device, uint64_t seed) {
  const Configuration configuration = draw_configuration(seed);
  const bool has_kernels_for_large = !device->host_accessible();
  if (configuration.block && has_kernels_for_large && seed % 2 == 0)
    return check_large_block_on(device, seed);
  const RandomGraph own = configuration.block ? random_block(seed, BlockSize::small, configuration.frozen)
                                              : random_graph(seed, configuration.frozen);
  std::string text = check_text(*own.graph);
  CompileOptions options = configuration.options();
  Run run(device, own, options);
  const Results results = run.results();
  const bool tensor_cores = !device->host_accessible() && tf32_allowed();
  const Precision precision =
      configuration.precision == Precision::tf32 && !tensor_cores ? Precision::fp32 : configuration.precision;
  text += difference_to_reference(results, *own.graph, run.lowered(), own.values, precision);
  if (!configuration.deterministic && !device->host_accessible()) return text;

  // The second run of a device that records is a recording's.
  if (const std::string names = names_of_different(results, run.results()); !names.empty())
    text += fmt::format("differs from run to run:{}\n", names);
  // Each value in memory of its own, and what is freed is NaN from then on.
  for (const bool planned : {false, true}) {
    options.plan_memory = planned;
    options.poison_freed = planned;
    Run other(device, own, options);
    if (const std::string names = names_of_different(results, other.results()); !names.empty())
      text +=
          fmt::format("{}:{}\n", planned ? "reads what was freed" : "differs without a memory plan", names);
  }
  return text;
}

}  // namespace tessera::testing
