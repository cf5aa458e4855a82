#include "tessera/compile/executable.h"

#include <optional>

#include "tessera/base/error.h"
#include "tessera/base/text.h"

#include "compile/finite.h"
#include "compile/kernel_choice.h"
#include "compile/run_inputs.h"
#include "compile/run_outputs.h"
#include "compile/run_updates.h"
#include "compile/run_variables.h"
#include "compile/schedule.h"
#include "compile/storage.h"

namespace tessera {
namespace {

class PlannedExecutable : public Executable {
 public:
  PlannedExecutable(const Graph& graph, std::shared_ptr<Device> device, const CompileOptions& options)
      : device_(std::move(device)), options_(options) {
    const auto begin = Clock::now();
    const std::set<std::string> symbols = free_symbols(graph);
    require(symbols.empty(), ErrorCode::invalid_argument,
            "graph '{}' cannot be compiled while {} {} no number: specialize it", graph.name(),
            fmt::join(symbols, ", "), symbols.size() == 1 ? "has" : "have");
    // Fused nodes would hide which of their members made a NaN.
    if (options.check_finite) options_.passes.fuse = false;
    graph_ = graph.clone();
    passes_ = run_pipeline(*graph_, pipeline(options_.passes),
                           {options_.passes, device_->pass_target(options_.passes)}, options_.pipeline);
    phases_.push_back({"passes", {begin, Clock::now()}});
    inputs_.emplace(*graph_, *device_);
    outputs_.emplace(*graph_, *device_);
    schedule_ = schedule(*graph_, options.passes.frozen);
    end_phase("schedule");
    choose_kernels();
    end_phase("choose kernels");
    plan_ = plan_storage(*graph_, schedule_, kernel_pointers(steps_),
                         {.reuse = options.plan_memory, .alignment = device_->memory_alignment()});
    check_fits(plan_.memory, graph_->name(), device_->description().memory_bytes);
    variables_.emplace(*graph_, schedule_, plan_, device_);
    updates_.emplace(*graph_, plan_, *device_);
    end_phase("plan memory");
  }

  const Graph& graph() const override { return *graph_; }
  const MemoryPlan& memory_plan() const override { return plan_.memory; }
  const std::vector<NodeReport>& nodes() const override { return reports_; }
  const std::vector<PassReport>& passes() const override { return passes_; }
  const std::vector<PhaseReport>& phases() const override { return phases_; }

  void bind(std::shared_ptr<Variables> variables) override {
    check_executes();
    variables_->share(std::move(variables));
    finish_binding();
  }

  void load(const VariableSource& value) override {
    check_executes();
    variables_->own(value);
    finish_binding();
  }

  void stage(const std::map<std::string, Tensor>& inputs) override { inputs_->stage(inputs); }

  std::map<std::string, Tensor> run(const std::map<std::string, Tensor>& inputs) override {
    check_none_submitted();
    submit(inputs);
    return receive();
  }

  void submit(const std::map<std::string, Tensor>& inputs) override {
    require(!outputs_->full(), ErrorCode::invalid_argument,
            "graph '{}' has {} runs under way: receive one first", graph_->name(), kMostSubmitted);
    take(inputs);
    work();
    outputs_->begin(updates_->outputs(memory_in_run_));
  }

  std::map<std::string, Tensor> receive() override {
    require(!outputs_->empty(), ErrorCode::invalid_argument, "graph '{}' has no run under way",
            graph_->name());
    return outputs_->finish();
  }

  void discard() override { outputs_->discard(); }

  std::vector<RunTimes> trace(const std::map<std::string, Tensor>& inputs, size_t runs) override {
    check_none_submitted();
    const std::unique_ptr<DeviceTimer> timer = device_->timer(2 * runs);
    const auto mark = [&] {
      if (timer != nullptr) timer->mark();
      return Clock::now();
    };
    std::vector<RunTimes> times(runs);
    const auto read_outputs = [&](RunTimes& run) {
      run.outputs.begin = Clock::now();
      outputs_->finish();
      run.outputs.end = Clock::now();
    };
    for (size_t i = 0; i < runs; ++i) {
      RunTimes& run = times[i];
      run.inputs.begin = Clock::now();
      take(inputs);
      run.inputs.end = run.work.begin = mark();
      run.recorded = work();
      run.work.end = mark();
      outputs_->begin(updates_->outputs(memory_in_run_));
      if (i > 0) read_outputs(times[i - 1]);
    }
    if (runs > 0) read_outputs(times.back());
    if (timer != nullptr) {
      const std::vector<Clock::time_point> points = timer->points();
      for (size_t i = 0; i < runs; ++i) times[i].device = TimeSpan{points[2 * i], points[2 * i + 1]};
    }
    return times;
  }

  NodeTimes profile(const std::map<std::string, Tensor>& inputs) override {
    check_none_submitted();
    if (!ran_) run(inputs);
    take(inputs);
    std::vector<Clock::time_point> points;
    const std::unique_ptr<DeviceTimer> timer =
        looks_after_nodes() ? nullptr : device_->timer(steps_.size() + 1);
    std::unique_ptr<Recording> recording;
    if (timer != nullptr) recording = device_->record([&] { run_nodes([&] { timer->mark(); }); });
    if (recording != nullptr) {
      recording->launch();
      points = timer->points();
    } else {
      run_nodes([&] {
        device_->synchronize();
        points.push_back(Clock::now());
      });
    }
    NodeTimes times{.nodes = std::vector<TimeSpan>(once_.size()), .recorded = recording != nullptr};
    size_t point = 0;
    for (const Step& step : steps_) {
      const auto begin = points[point];
      if (step.kernel != nullptr) ++point;
      times.nodes.push_back({begin, points[point]});
    }
    return times;
  }

 private:
  struct Step {
    const Node* node = nullptr;
    std::unique_ptr<Kernel> kernel;
    std::string kernel_name;
    std::string operator_name;  // with the kind of a fused node
    std::vector<bool> frozen;
    std::vector<const void*> inputs;
    std::vector<void*> outputs;
    void* workspace = nullptr;

    // What a kernel throws says of which node it is.
    void run() {
      if (kernel == nullptr) return;
      try {
        kernel->run({inputs, outputs, workspace});
      } catch (const Error& error) {
        std::vector<std::string> types;
        for (const Value* input : node->inputs()) types.push_back(to_string(input->type()));
        fail(error.code(), "{}\n  in kernel {} of node '{}': {} of {}", error.what(), kernel_name,
             node->name(), operator_name, fmt::join(types, ", "));
      }
    }
  };

  static std::vector<Kernel*> kernel_pointers(const std::vector<Step>& steps) {
    std::vector<Kernel*> pointers;
    for (const Step& step : steps) pointers.push_back(step.kernel.get());
    return pointers;
  }

  void end_phase(const char* name) {
    const Clock::time_point begin = phases_.back().time.end;
    phases_.push_back({name, {begin, Clock::now()}});
  }

  void choose_kernels() {
    std::unique_ptr<Tuner> tuner;
    if (options_.tune || !options_.tuning_file.empty()) {
      tuner = std::make_unique<Tuner>(*device_, options_.tuning_file, options_.tune);
    }
    std::vector<KernelRequest> requests;
    for (const auto* nodes : {&schedule_.once, &schedule_.every_run}) {
      for (const Node* node : *nodes) {
        if (!is_alias(*node)) requests.push_back(request_for(*node));
      }
    }
    const std::shared_ptr<void> background = device_->prepare_kernels(requests, tuner != nullptr);
    for (const Node* node : schedule_.once) {
      once_.push_back(make_step(*node, nullptr));
      reports_.back().once = true;
    }
    for (const Node* node : schedule_.every_run) steps_.push_back(make_step(*node, tuner.get()));
    if (tuner != nullptr) tuner->save();
  }

  KernelRequest request_for(const Node& node) const {
    KernelRequest request{.node = node,
                          .frozen_inputs = {},
                          .deterministic = options_.passes.deterministic,
                          .tf32 = options_.passes.precision == Precision::tf32 && tf32_allowed()};
    // What runs once packs nothing: it is not prepared.
    const bool runs_once = schedule_.settled.contains(node.output());
    for (const Value* input : node.inputs())
      request.frozen_inputs.push_back(!runs_once && schedule_.settled.contains(input));
    return request;
  }

  Step make_step(const Node& node, Tuner* tuner) {
    Step step;
    step.node = &node;
    if (is_alias(node)) {
      step.frozen.assign(node.inputs().size(), false);
      reports_.push_back(
          {.name = node.name(), .operator_name = node.operator_name(), .kernel = "alias", .candidates = {}});
      return step;
    }
    const KernelRequest request = request_for(node);
    step.frozen = request.frozen_inputs;
    ChosenKernel choice = choose_kernel(request, *device_, tuner);
    step.kernel = std::move(choice.kernel);
    step.kernel_name = choice.report.kernel;
    step.operator_name = choice.report.operator_name;
    reports_.push_back(std::move(choice.report));
    return step;
  }

  void check_executes() const {
    require(device_->executes(), ErrorCode::unsupported, "device '{}' plans but does not run",
            device_->description().name);
  }

  void finish_binding() {
    recording_.reset();
    outputs_->discard();
    ran_ = false;
    try {
      allocate();
      run_once();
      variables_->before_runs();
      resolve_runs();
      for (Step& step : steps_) {
        for (size_t i = 0; i < step.frozen.size(); ++i) {
          if (step.frozen[i]) step.kernel->prepare(i, step.inputs[i]);
        }
      }
    } catch (...) {
      variables_->unbind();
      throw;
    }
  }

  void run_once() {
    for (Step& step : once_) {
      variables_->before_once(*step.node);
      resolve(step);
      if (step.kernel != nullptr) {
        std::shared_ptr<void> workspace;
        if (step.kernel->workspace_bytes() > 0) workspace = device_->allocate(step.kernel->workspace_bytes());
        step.workspace = workspace.get();
        step.run();
      }
      variables_->after_once(*step.node);
    }
  }

  void allocate() {
    if (arena_ != nullptr) return;
    std::shared_ptr<void> arena = allocate_arena(plan_.memory, graph_->name(), *device_);
    persistent_.clear();  // of an attempt that failed
    for (const Value* value : plan_.persistent)
      persistent_.push_back(device_->allocate(value->type().bytes()));
    updates_->allocate();
    arena_ = std::move(arena);
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

  void resolve(Step& step) {
    step.inputs.clear();
    step.outputs.clear();
    for (const Value* input : step.node->inputs()) step.inputs.push_back(memory_of(input));
    for (const auto& output : step.node->outputs()) step.outputs.push_back(memory_of(output.get()));
  }

  void resolve_runs() {
    inputs_->disconnect_all();
    for (size_t index = 0; index < steps_.size(); ++index) {
      Step& step = steps_[index];
      resolve(step);
      for (size_t i = 0; i < step.inputs.size(); ++i) {
        const Placement& placement = plan_.placements.at(step.node->input(i));
        if (placement.kind == StorageKind::input) inputs_->connect(placement.index, step.inputs[i]);
      }
      const size_t block = plan_.workspace_blocks[index];
      if (block != StoragePlan::kNone)
        step.workspace = static_cast<char*>(arena_.get()) + plan_.memory.blocks[block].offset;
    }
  }

  void check_none_submitted() const {
    require(outputs_->empty(), ErrorCode::invalid_argument,
            "graph '{}' has a run under way: receive or discard it first", graph_->name());
  }

  void take(const std::map<std::string, Tensor>& inputs) {
    require(variables_->bound(), ErrorCode::invalid_argument, "graph '{}' runs after bind() or load()",
            graph_->name());
    inputs_->take(inputs);
  }

  // True where the host wants to see what each node made.
  bool looks_after_nodes() const { return options_.check_finite || options_.poison_freed; }

  // Enqueues a run, or runs where the device is the host. The second run makes a recording of the whole,
  // which it launches, and so do all later ones: the first one lets kernels load what they load once. Returns
  // whether it was launched; not every device records.
  bool work() {
    const bool recordable = ran_ && !device_->host_accessible() && !looks_after_nodes();
    if (recordable && recording_ == nullptr) recording_ = device_->record([this] { run_nodes([] {}); });
    if (recording_ != nullptr) {
      recording_->launch();
      return true;
    }
    run_nodes([] {});
    ran_ = true;
    return false;
  }

  // Calls `mark` before the first node and behind each that has a kernel.
  template <typename Mark>
  void run_nodes(Mark&& mark) {
    mark();
    for (size_t index = 0; index < steps_.size(); ++index) {
      steps_[index].run();
      if (steps_[index].kernel != nullptr) mark();
      // What an alias shows was made elsewhere; one of an input has no memory of its own here.
      if (options_.check_finite && steps_[index].kernel != nullptr)
        check_finite(*steps_[index].node, steps_[index].outputs, *device_);
      if (options_.poison_freed) poison(static_cast<int64_t>(index));
    }
    updates_->apply(memory_in_run_, *variables_);
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
  std::optional<RunOutputs> outputs_;
  std::optional<RunVariables> variables_;
  std::optional<RunUpdates> updates_;
  std::vector<PhaseReport> phases_;

  std::shared_ptr<void> arena_;
  std::vector<std::shared_ptr<void>> persistent_;
  const RunUpdates::MemoryOf memory_in_run_ = [this](const Value* value) -> const void* {
    const Placement& placement = plan_.placements.at(value);
    return placement.kind == StorageKind::input ? inputs_->memory(placement.index) : memory_of(value);
  };
  bool ran_ = false;
  std::unique_ptr<Recording> recording_;
};

}  // namespace

std::unique_ptr<Executable> compile(const Graph& graph, std::shared_ptr<Device> device,
                                    const CompileOptions& options) {
  check_total_bytes(graph);
  return std::make_unique<PlannedExecutable>(graph, std::move(device), options);
}

}  // namespace tessera
