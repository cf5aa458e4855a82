#include "tessera/compile/executable.h"

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <optional>

#include "tessera/base/error.h"
#include "tessera/base/text.h"

#include "compile/kernel_choice.h"
#include "compile/run_inputs.h"
#include "compile/schedule.h"
#include "compile/storage.h"

namespace tessera {
namespace {

using Clock = std::chrono::steady_clock;

double microseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

// NVIDIA_TF32_OVERRIDE=0 is NVIDIA's own switch against TF32 in every library.
bool allows_tf32(const CompileOptions& options) {
  const char* override = std::getenv("NVIDIA_TF32_OVERRIDE");
  const bool forbidden = override != nullptr && std::string_view(override) == "0";
  return options.passes.precision == Precision::tf32 && !forbidden;
}

std::string describe_peak(const MemoryPlan& plan) {
  std::vector<std::string> parts;
  for (const MemoryBlock* block : peak_blocks(plan, 5)) {
    parts.push_back(fmt::format("{} {}", block->name, format_bytes(static_cast<double>(block->bytes))));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

class PlannedExecutable : public Executable {
 public:
  PlannedExecutable(const Graph& graph, std::shared_ptr<Device> device, const CompileOptions& options)
      : device_(std::move(device)), options_(options) {
    const auto start = Clock::now();
    const std::set<std::string> symbols = free_symbols(graph);
    require(symbols.empty(), ErrorCode::invalid_argument,
            "graph '{}' cannot be compiled while {} {} no number: specialise it", graph.name(),
            fmt::join(symbols, ", "), symbols.size() == 1 ? "has" : "have");
    // Fused nodes would hide which of their members made a NaN.
    if (options.check_finite) options_.passes.fuse = false;
    device_->prepare(options_.passes);
    graph_ = graph.clone();
    passes_ = run_pipeline(*graph_, pipeline(options_.passes), options_.passes, options_.pipeline);
    inputs_.emplace(*graph_, *device_);
    schedule_ = schedule(*graph_, options.passes.frozen);
    choose_kernels();
    plan_ = plan_storage(*graph_, schedule_, kernel_pointers(steps_), {.reuse = options.plan_memory});
    check_fits();
    compile_seconds_ = microseconds_since(start) * 1e-6;
  }

  const Graph& graph() const override { return *graph_; }
  const MemoryPlan& memory_plan() const override { return plan_.memory; }
  const std::vector<NodeReport>& nodes() const override { return reports_; }
  const std::vector<PassReport>& passes() const override { return passes_; }
  double compile_seconds() const override { return compile_seconds_; }

  void bind(std::shared_ptr<Variables> variables) override {
    require(device_->executes(), ErrorCode::unsupported, "device '{}' plans but does not run",
            device_->description().name);
    for (const auto& input : graph_->inputs()) {
      if (input->role() != InputRole::input) check_variable(*input, *variables);
    }
    variables_ = std::move(variables);
    recording_.reset();
    ran_ = false;
    allocate();
    resolve(once_);
    resolve(steps_);
    for (Step& step : once_) step.run();
    for (Step& step : steps_) {
      for (size_t i = 0; i < step.frozen.size(); ++i) {
        if (step.frozen[i]) step.kernel->prepare(i, step.inputs[i]);
      }
    }
  }

  void stage(const std::map<std::string, Tensor>& inputs) override { inputs_->stage(inputs); }

  std::map<std::string, Tensor> run(const std::map<std::string, Tensor>& inputs) override {
    return execute(inputs, nullptr);
  }

  std::vector<double> profile(const std::map<std::string, Tensor>& inputs) override {
    std::vector<double> times;
    execute(inputs, &times);
    return times;
  }

 private:
  struct Step {
    const Node* node = nullptr;
    std::unique_ptr<Kernel> kernel;
    std::vector<bool> frozen;
    std::vector<const void*> inputs;
    std::vector<void*> outputs;
    void* workspace = nullptr;

    void run() {
      if (kernel != nullptr) kernel->run({inputs, outputs, workspace});
    }
  };

  static std::vector<Kernel*> kernel_pointers(const std::vector<Step>& steps) {
    std::vector<Kernel*> pointers;
    for (const Step& step : steps) pointers.push_back(step.kernel.get());
    return pointers;
  }

  void choose_kernels() {
    std::unique_ptr<Tuner> tuner;
    if (options_.tune || !options_.tuning_file.empty()) {
      tuner = std::make_unique<Tuner>(*device_, options_.tuning_file, options_.tune);
    }
    for (const Node* node : schedule_.once) once_.push_back(make_step(*node, nullptr));
    for (const Node* node : schedule_.every_run) steps_.push_back(make_step(*node, tuner.get()));
    if (tuner != nullptr) tuner->save();
  }

  Step make_step(const Node& node, Tuner* tuner) {
    Step step;
    step.node = &node;
    for (const Value* input : node.inputs()) step.frozen.push_back(schedule_.settled.contains(input));
    if (is_alias(node)) {
      step.frozen.assign(step.frozen.size(), false);
      reports_.push_back(
          {.name = node.name(), .operator_name = node.operator_name(), .kernel = "alias", .candidates = {}});
      return step;
    }
    ChosenKernel choice = choose_kernel(
        {node, step.frozen, options_.passes.deterministic, allows_tf32(options_)}, *device_, tuner);
    step.kernel = std::move(choice.kernel);
    reports_.push_back(std::move(choice.report));
    return step;
  }

  void check_fits() const {
    const int64_t memory = device_->description().memory_bytes;
    const int64_t needed = plan_.memory.peak_bytes + plan_.memory.variable_bytes;
    require(memory <= 0 || needed <= memory, ErrorCode::out_of_memory,
            "graph '{}' needs {} ({} of them parameters and states), the device has {}; the largest at the "
            "peak: {}",
            graph_->name(), format_bytes(static_cast<double>(needed)),
            format_bytes(static_cast<double>(plan_.memory.variable_bytes)),
            format_bytes(static_cast<double>(memory)), describe_peak(plan_.memory));
  }

  static void check_variable(const Value& input, const Variables& variables) {
    const std::string& name = input.name();
    const Shape& shape = variables.shape(name);
    require(variables.data_type(name) == input.data_type() && shape == input.type().static_shape(),
            ErrorCode::invalid_argument, "variable '{}' is {}{}, the graph wants {}", name,
            to_string(variables.data_type(name)), to_string(shape), to_string(input.type()));
  }

  void allocate() {
    if (arena_ == nullptr) {
      arena_ = device_->allocate(std::max<int64_t>(plan_.memory.peak_bytes, 1));
      for (const Value* value : plan_.persistent)
        persistent_.push_back(device_->allocate(value->type().bytes()));
      for (size_t update : plan_.copied_updates) {
        // Sources that are variables may be overwritten by another update's copy: they go through a buffer.
        const Value* next = graph_->updates()[update].next;
        const bool from_variable = plan_.placements.at(next).kind == StorageKind::variable;
        staging_.push_back(from_variable ? device_->allocate(next->type().bytes()) : nullptr);
      }
      for (const auto& [name, value] : graph_->outputs()) {
        if (plan_.placements.at(value).kind == StorageKind::variable && !plan_.copied_updates.empty())
          kept_outputs_[value] = device_->allocate(value->type().bytes());
      }
    }
  }

  // The memory of a value that is no input of the run.
  void* memory_of(const Value* value) const {
    const Placement& placement = plan_.placements.at(value);
    switch (placement.kind) {
      case StorageKind::variable:
        return variables_->pointer(placement.variable);
      case StorageKind::persistent:
        return persistent_[placement.index].get();
      case StorageKind::arena:
        return static_cast<char*>(arena_.get()) + plan_.memory.blocks[placement.index].offset;
      case StorageKind::input:
        break;
    }
    return nullptr;  // connected to the input instead
  }

  void resolve(std::vector<Step>& steps) {
    const bool every_run = &steps == &steps_;
    if (every_run) inputs_->disconnect_all();
    once_workspace_.clear();
    for (size_t index = 0; index < steps.size(); ++index) {
      Step& step = steps[index];
      step.inputs.assign(step.node->inputs().size(), nullptr);
      step.outputs.clear();
      for (size_t i = 0; i < step.inputs.size(); ++i) {
        const Placement& placement = plan_.placements.at(step.node->input(i));
        if (placement.kind == StorageKind::input) inputs_->connect(placement.index, step.inputs[i]);
        step.inputs[i] = memory_of(step.node->input(i));
      }
      for (const auto& output : step.node->outputs()) step.outputs.push_back(memory_of(output.get()));
      if (step.kernel == nullptr) continue;
      if (every_run) {
        const size_t block = plan_.workspace_blocks[index];
        if (block != StoragePlan::kNone)
          step.workspace = static_cast<char*>(arena_.get()) + plan_.memory.blocks[block].offset;
      } else if (step.kernel->workspace_bytes() > 0) {
        once_workspace_.push_back(device_->allocate(step.kernel->workspace_bytes()));
        step.workspace = once_workspace_.back().get();
      }
    }
  }

  std::map<std::string, Tensor> execute(const std::map<std::string, Tensor>& inputs,
                                        std::vector<double>* times) {
    require(variables_ != nullptr, ErrorCode::invalid_argument, "graph '{}' runs after bind()",
            graph_->name());
    inputs_->take(inputs);
    const bool plain = times != nullptr || options_.check_finite || options_.poison_freed;
    if (!plain && run_recorded()) return read_outputs();
    // Reports list the work done once first.
    if (times != nullptr) times->assign(once_.size(), 0);
    for (size_t index = 0; index < steps_.size(); ++index) {
      const auto start = Clock::now();
      steps_[index].run();
      if (times != nullptr) {
        device_->synchronise();
        times->push_back(microseconds_since(start));
      }
      // What an alias shows was made elsewhere; one of an input has no memory of its own here.
      if (options_.check_finite && steps_[index].kernel != nullptr) check_finite(steps_[index]);
      if (options_.poison_freed) poison(static_cast<int64_t>(index));
    }
    keep_outputs();
    copy_updates();
    ran_ = true;
    return read_outputs();
  }

  // Launches the recording of the whole run, which the second run makes: the first one lets kernels load what
  // they load once. False where the device records nothing.
  bool run_recorded() {
    if (!ran_ || device_->host_accessible()) return false;
    if (recording_ == nullptr) {
      recording_ = device_->record([this] {
        for (Step& step : steps_) step.run();
        keep_outputs();
        copy_updates();
      });
    }
    if (recording_ == nullptr) return false;
    recording_->launch();
    return true;
  }

  const void* memory_in_run(const Value* value) const {
    const Placement& placement = plan_.placements.at(value);
    return placement.kind == StorageKind::input ? inputs_->memory(placement.index) : memory_of(value);
  }

  // Copies outputs that are the values of variables before an update overwrites them.
  void keep_outputs() {
    for (const auto& [name, value] : graph_->outputs()) {
      const auto kept = kept_outputs_.find(value);
      if (kept != kept_outputs_.end())
        device_->copy(kept->second.get(), memory_in_run(value), value->type().bytes());
    }
  }

  std::map<std::string, Tensor> read_outputs() {
    std::map<std::string, Tensor> outputs;
    device_->synchronise();
    for (const auto& [name, value] : graph_->outputs()) {
      Tensor tensor(value->data_type(), value->type().static_shape());
      const auto kept = kept_outputs_.find(value);
      const void* memory = kept != kept_outputs_.end() ? kept->second.get() : memory_in_run(value);
      device_->copy_to_host(tensor.raw(), memory, value->type().bytes());
      outputs.emplace(name, std::move(tensor));
    }
    return outputs;
  }

  void copy_updates() {
    for (const bool staged : {true, false}) {
      for (size_t i = 0; i < plan_.copied_updates.size(); ++i) {
        const auto& [state, next] = graph_->updates()[plan_.copied_updates[i]];
        const int64_t bytes = next->type().bytes();
        if (staged && staging_[i] != nullptr) device_->copy(staging_[i].get(), memory_in_run(next), bytes);
        if (!staged) {
          device_->copy(variables_->pointer(state->name()),
                        staging_[i] != nullptr ? staging_[i].get() : memory_in_run(next), bytes);
        }
      }
    }
  }

  void check_finite(const Step& step) const {
    for (size_t i = 0; i < step.node->outputs().size(); ++i) {
      const TensorType& type = step.node->output(i)->type();
      if (!is_floating(type.data_type)) continue;
      Tensor tensor(type.data_type, type.static_shape());
      device_->copy_to_host(tensor.raw(), step.outputs[i], type.bytes());
      for (int64_t e = 0; e < tensor.size(); ++e) {
        require(std::isfinite(tensor.at(e)), ErrorCode::not_finite,
                "node '{}' made {} at element {} of {}: {}", step.node->name(), tensor.at(e), e,
                to_string(type), print(*step.node).substr(0, 300));
      }
    }
  }

  void poison(int64_t step) {
    for (const MemoryBlock& block : plan_.memory.blocks) {
      if (block.last == step)
        device_->fill(static_cast<char*>(arena_.get()) + block.offset, 0xFF, block.bytes);
    }
  }

  std::shared_ptr<Device> device_;
  CompileOptions options_;
  std::unique_ptr<Graph> graph_;
  std::vector<PassReport> passes_;
  Schedule schedule_;
  std::vector<Step> once_;
  std::vector<Step> steps_;
  std::vector<NodeReport> reports_;
  StoragePlan plan_;
  std::optional<RunInputs> inputs_;
  double compile_seconds_ = 0;

  std::shared_ptr<Variables> variables_;
  std::shared_ptr<void> arena_;
  std::vector<std::shared_ptr<void>> persistent_;
  std::vector<std::shared_ptr<void>> once_workspace_;
  std::vector<std::shared_ptr<void>> staging_;  // beside plan_.copied_updates; null where the copy is direct
  std::unordered_map<const Value*, std::shared_ptr<void>> kept_outputs_;
  bool ran_ = false;
  std::unique_ptr<Recording> recording_;
};

}  // namespace

std::unique_ptr<Executable> compile(const Graph& graph, std::shared_ptr<Device> device,
                                    const CompileOptions& options) {
  return std::make_unique<PlannedExecutable>(graph, std::move(device), options);
}

}  // namespace tessera
