#include "tessera/compile/executable.h"

#include <algorithm>
#include <optional>

#include "tessera/base/error.h"
#include "tessera/base/progress.h"
#include "tessera/base/text.h"
#include "tessera/compile/communicator.h"

#include "compile/compiled_plan.h"
#include "compile/derived_values.h"
#include "compile/finite.h"
#include "compile/lane_run.h"
#include "compile/packed_inputs.h"
#include "compile/prepared_graph.h"
#include "compile/queue_work.h"
#include "compile/recorded_run.h"
#include "compile/run_inputs.h"
#include "compile/run_outputs.h"
#include "compile/run_updates.h"
#include "compile/run_variables.h"
#include "compile/step_timer.h"

namespace tessera {
namespace {

void* at(void* memory, int64_t offset) {
  return static_cast<char*>(memory) + offset;
}

class PlannedExecutable : public Executable {
 public:
  PlannedExecutable(const Graph& graph, std::shared_ptr<Device> device, const CompileOptions& options)
      : device_(std::move(device)),
        workspace_(options.workspace != nullptr ? options.workspace : std::make_shared<Workspace>(device_)),
        queue_(workspace_->queue()) {
    require(workspace_->device() == device_, ErrorCode::invalid_argument,
            "graph '{}' is compiled for '{}', its workspace is another device's", graph.name(),
            device_->description().name);
    compiled_ = compile_plan(graph, *device_, options);
    inputs_.emplace(*compiled_.graph, *device_, *queue_);
    outputs_.emplace(*compiled_.graph, *queue_);
    derived_.emplace(compiled_.schedule, compiled_.storage, *device_, [this](const Node& node) {
      return request_for(node, compiled_.schedule, compiled_.options);
    });
    packed_.emplace(compiled_.steps, *derived_, *device_, compiled_.storage.memory);
    check_fits(compiled_.storage.memory, compiled_.graph->name(), device_->description().memory_bytes);
    use_ = workspace_->add_use({compiled_.graph->name(), compiled_.storage.memory.peak_bytes});
    variables_.emplace(*compiled_.graph, compiled_.schedule, compiled_.storage, device_, queue_);
    updates_.emplace(*compiled_.graph, compiled_.storage, *device_, *queue_);
    compiled_.end_phase("plan memory");
  }

  // What the device still does uses memory that goes.
  ~PlannedExecutable() override { const QueueWork done(*queue_); }
  PlannedExecutable(const PlannedExecutable&) = delete;
  PlannedExecutable& operator=(const PlannedExecutable&) = delete;

  const Graph& graph() const override { return *compiled_.graph; }
  const MemoryPlan& memory_plan() const override { return compiled_.storage.memory; }
  const std::shared_ptr<Workspace>& workspace() const override { return workspace_; }
  const std::vector<NodeReport>& nodes() const override { return compiled_.reports; }
  const std::vector<NodeReport>& replaced() const override { return compiled_.replaced; }
  const std::vector<PassReport>& passes() const override { return compiled_.passes; }
  const std::vector<PhaseReport>& phases() const override { return compiled_.phases; }

  void bind(std::shared_ptr<Variables> variables) override {
    check_executes();
    queue_->synchronize();
    variables_->share(std::move(variables));
    finish_binding();
  }

  void load(const VariableSource& value) override {
    check_executes();
    queue_->synchronize();
    variables_->own(value);
    finish_binding();
  }

  void stage(const std::map<std::string, Tensor>& inputs) override { inputs_->stage(inputs); }
  void stage(const DeviceFeeds& inputs) override { inputs_->stage(inputs); }

  void fetch(const std::string& output, Fetch where) override {
    check_none_submitted();
    outputs_->fetch(output_index(output), where);
  }

  DeviceTensor output(const std::string& name) override {
    const size_t index = output_index(name);
    require(ran_, ErrorCode::invalid_argument, "graph '{}' has not run yet", compiled_.graph->name());
    const Value& value = *compiled_.graph->outputs()[index].value;
    void* memory = const_cast<void*>(updates_->output(memory_in_run_, index));
    return DeviceTensor::wrap(device_, value.data_type(), value.type().static_shape(),
                              std::shared_ptr<void>(workspace_, memory), queue_->mark());
  }

  PreparedGraph prepared() const override {
    if (!device_->executes()) return prepare_graph(compiled_, *device_, nullptr);
    check_bound();
    return prepare_graph(compiled_, *device_, [this](const Value& value) { return memory_of(&value); });
  }

  Queue& queue() override { return *queue_; }

  std::map<std::string, Tensor> run(const std::map<std::string, Tensor>& inputs) override {
    check_none_submitted();
    submit(inputs, {});
    return receive();
  }

  void submit(const std::map<std::string, Tensor>& inputs, const DeviceFeeds& there) override {
    require(!outputs_->full(), ErrorCode::invalid_argument,
            "graph '{}' has {} runs under way: receive one first", compiled_.graph->name(), kMostSubmitted);
    take(inputs, there);
    work();
    outputs_->begin(updates_->outputs(memory_in_run_));
  }

  std::map<std::string, Tensor> receive() override {
    require(!outputs_->empty(), ErrorCode::invalid_argument, "graph '{}' has no run under way",
            compiled_.graph->name());
    if (compiled_.groups.empty()) return outputs_->finish();
    const WaitForRanks waiting;
    std::map<std::string, Tensor> outputs = outputs_->finish();
    // What a device made that had to give up, because another rank had failed, is nothing.
    for (const auto& group : compiled_.groups) group->check();
    return outputs;
  }

  void discard() override { outputs_->discard(); }

  std::vector<RunTimes> trace_fed(const std::function<RunFeeds()>& next, size_t runs) override {
    check_none_submitted();
    const std::unique_ptr<DeviceTimer> timer = queue_->timer(2 * runs);
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
      run.reading.begin = Clock::now();
      const RunFeeds inputs = next();
      run.reading.end = run.inputs.begin = Clock::now();
      take(inputs.host, inputs.there);
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
    take(inputs, {});
    const bool needs_host =
        looks_after_nodes() || !std::all_of(compiled_.steps.begin(), compiled_.steps.end(), is_recordable);
    StepTimer timer(*queue_, compiled_.steps, compiled_.lanes, needs_host);
    const auto run = [&] { run_nodes([&] { timer.mark(); }, timer.lane()); };
    std::unique_ptr<Recording> recording;
    if (timer.is_by_device()) recording = queue_->record(run);
    if (recording != nullptr) {
      recording->launch();
    } else {
      timer.use_host();
      run();
    }
    NodeTimes times{.nodes = std::vector<TimeSpan>(compiled_.once.size()), .recorded = recording != nullptr};
    const std::vector<TimeSpan> of_steps = timer.times();
    times.nodes.insert(times.nodes.end(), of_steps.begin(), of_steps.end());
    return times;
  }

 private:
  void check_executes() const {
    require(device_->executes(), ErrorCode::unsupported, "device '{}' plans but does not run",
            device_->description().name);
  }

  void finish_binding() {
    recorded_.reset();
    outputs_->discard();
    ran_ = false;
    try {
      if (!allocated_) allocate();
      run_once();
      variables_->before_runs();
      resolve_runs();
      packed_->give(compiled_.steps, *variables_);
    } catch (...) {
      variables_->unbind();
      throw;
    }
  }

  void run_once() {
    variables_->order();
    const std::unordered_set<const Node*> missing = derived_->take(compiled_.schedule.once, *variables_);
    for (Step& step : compiled_.once) {
      if (!missing.contains(step.node)) continue;
      variables_->before_once(*step.node);
      if (step.kernel != nullptr) {
        derived_->allocate(*step.node);
        resolve(step);
        std::shared_ptr<void> workspace;
        if (step.kernel->workspace_bytes() > 0) workspace = device_->allocate(step.kernel->workspace_bytes());
        const QueueWork done(*queue_);
        step.workspace = workspace.get();
        step.run(*queue_, waits_for_each_);
      }
      variables_->after_once(*step.node);
      derived_->release_after(*step.node);
    }
    queue_->synchronize();
    derived_->keep(*variables_);
  }

  void allocate() {
    reserve_arena(compiled_.storage.memory, compiled_.graph->name(), *workspace_);
    arena_ = workspace_->memory();
    updates_->allocate();
    allocated_ = true;
  }

  // Another executable of the workspace may have needed more memory since.
  void follow_workspace() {
    if (workspace_->memory() == arena_) return;
    reserve_arena(compiled_.storage.memory, compiled_.graph->name(), *workspace_);
    arena_ = workspace_->memory();
    resolve_runs();
    recorded_.reset();
  }

  // The memory of a value that is no input of the run.
  void* memory_of(const Value* value) const {
    const Placement& placement = compiled_.storage.placements.at(value);
    switch (placement.kind) {
      case StorageKind::variable:
        return at(variables_->pointer(placement.variable), placement.offset);
      case StorageKind::persistent:
        return at(derived_->memory(placement.index), placement.offset);
      case StorageKind::arena:
        return at(arena_, compiled_.storage.memory.blocks[placement.index].offset + placement.offset);
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
    for (size_t index = 0; index < compiled_.steps.size(); ++index) {
      Step& step = compiled_.steps[index];
      resolve(step);
      for (size_t i = 0; i < step.inputs.size(); ++i) {
        const auto& [kind, input, variable, offset] = compiled_.storage.placements.at(step.node->input(i));
        if (kind == StorageKind::input) inputs_->connect(input, offset, step.inputs[i]);
      }
      const size_t block = compiled_.storage.workspace_blocks[index];
      if (block != StoragePlan::kNone)
        step.workspace = at(arena_, compiled_.storage.memory.blocks[block].offset);
    }
  }

  size_t output_index(const std::string& name) const {
    const auto& outputs = compiled_.graph->outputs();
    const auto found =
        std::find_if(outputs.begin(), outputs.end(), [&](const auto& output) { return output.name == name; });
    require(found != outputs.end(), ErrorCode::invalid_argument, "graph '{}' has no output '{}'",
            compiled_.graph->name(), name);
    return static_cast<size_t>(found - outputs.begin());
  }

  void check_none_submitted() const {
    require(outputs_->empty(), ErrorCode::invalid_argument,
            "graph '{}' has a run under way: receive or discard it first", compiled_.graph->name());
  }

  void check_bound() const {
    require(variables_->bound(), ErrorCode::invalid_argument, "graph '{}' runs after bind() or load()",
            compiled_.graph->name());
  }

  void take(const std::map<std::string, Tensor>& inputs, const DeviceFeeds& there) {
    check_bound();
    follow_workspace();
    if (inputs_->take(inputs, there)) recorded_.reset();
    variables_->before_run();
  }

  // True where the host wants to see what each node made, or that it was made.
  bool looks_after_nodes() const {
    return compiled_.options.check_finite || compiled_.options.poison_freed || waits_for_each_;
  }

  // Enqueues a run, or runs where the device is the host. The second run is recorded and then launched, as
  // are all later ones: the first one lets kernels load what they load once. Returns whether it was launched;
  // not every device records.
  bool work() {
    const bool records = ran_ && !device_->host_accessible() && !looks_after_nodes();
    if (records && !recorded_.has_value())
      recorded_ = RecordedRun::record(*queue_, compiled_.steps, run_steps_);
    if (recorded_.has_value()) {
      recorded_->launch();
      return true;
    }
    run_nodes([] {});
    ran_ = true;
    return false;
  }

  // Calls `mark` before the first node and after each that has a kernel.
  template <typename Mark>
  void run_nodes(Mark&& mark, DeviceTimer* lane_timer = nullptr) {
    mark();
    run_steps(0, compiled_.steps.size(), mark, lane_timer);
  }

  // Of these nothing is left on the lane at the end. Where the host looks at each node nothing is there at
  // all.
  template <typename Mark>
  void run_steps(size_t begin, size_t end, Mark&& mark, DeviceTimer* lane_timer = nullptr) {
    LaneRun lane(*queue_, compiled_.lanes, !compiled_.options.check_finite);
    for (size_t index = begin; index < end; ++index) {
      Queue& queue = lane.begin(index);
      const bool is_timed = lane_timer != nullptr && compiled_.lanes.on_lane[index];
      if (is_timed) lane_timer->mark();
      compiled_.steps[index].run(queue, waits_for_each_);
      if (is_timed) lane_timer->mark();
      lane.end(index);
      if (compiled_.steps[index].kernel != nullptr) mark();
      // What an alias shows was made elsewhere; one of an input has no memory of its own here.
      if (compiled_.options.check_finite && compiled_.steps[index].kernel != nullptr)
        check_finite(*compiled_.steps[index].node, compiled_.steps[index].outputs, *queue_);
      if (compiled_.options.poison_freed) poison(static_cast<int64_t>(index));
    }
    lane.join();
    if (end == compiled_.steps.size()) updates_->apply(memory_in_run_, *variables_);
  }

  void poison(int64_t step) {
    for (const MemoryBlock& block : compiled_.storage.memory.blocks) {
      if (block.last == step) queue_->fill(at(arena_, block.offset), 0xFF, block.bytes);
    }
  }

  std::shared_ptr<Device> device_;
  std::shared_ptr<Workspace> workspace_;
  std::shared_ptr<const WorkspaceUse> use_;
  std::shared_ptr<Queue> queue_;  // the workspace's; what it makes comes after it
  const bool waits_for_each_ = waits_for_each_node();
  CompiledPlan compiled_;
  std::optional<RunInputs> inputs_;
  std::optional<RunOutputs> outputs_;
  std::optional<RunVariables> variables_;
  std::optional<RunUpdates> updates_;
  std::optional<DerivedValues> derived_;
  std::optional<PackedInputs> packed_;

  void* arena_ = nullptr;  // the workspace's, when it was last looked at
  bool allocated_ = false;
  const RunUpdates::MemoryOf memory_in_run_ = [this](const Value* value) -> const void* {
    const Placement& placement = compiled_.storage.placements.at(value);
    return placement.kind == StorageKind::input ? inputs_->memory(placement.index, placement.offset)
                                                : memory_of(value);
  };
  const RecordedRun::RunSteps run_steps_ = [this](size_t begin, size_t end) { run_steps(begin, end, [] {}); };
  bool ran_ = false;
  std::optional<RecordedRun> recorded_;
};

}  // namespace

std::unique_ptr<Executable> compile(const Graph& graph, std::shared_ptr<Device> device,
                                    const CompileOptions& options) {
  check_total_bytes(graph);
  return std::make_unique<PlannedExecutable>(graph, std::move(device), options);
}

}  // namespace tessera
