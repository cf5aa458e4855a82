#include "tessera/train/trainer.h"

#include <cmath>
#include <utility>

#include "tessera/base/error.h"
#include "tessera/base/log.h"
#include "tessera/base/progress.h"
#include "tessera/distribute/exchange.h"

#include "train/fitting.h"
#include "train/pass_counter.h"
#include "train/read_states.h"

namespace tessera::train {
namespace {

// Of a task of which nothing is served.
std::vector<nn::Variable> network_variables(const nn::Task& task, const SymbolBindings& sizes) {
  Graph graph;
  nn::Context context(graph, nn::Mode::training);
  task.training(context, nn::add_inputs(graph, task, sizes));
  std::vector<nn::Variable> variables = context.variables();
  std::erase_if(variables, [](const nn::Variable& variable) { return variable.name == "random_counter"; });
  return variables;
}

Phase phase_of(const TrainerOptions& options, size_t index) {
  if (options.phases.empty()) return {.groups = {{.optimizer = options.optimizer}}};
  Phase phase = options.phases.at(index);
  // What several phases keep must have names that differ.
  if (phase.name.empty() && options.phases.size() > 1) phase.name = phase.objective;
  return phase;
}

nn::Ranks ranks_of(const TrainerOptions& options) {
  if (options.communicator == nullptr) return {};
  const int64_t count = options.communicator->size();
  require(options.batch_norm_ranks == 0 || count % options.batch_norm_ranks == 0, ErrorCode::invalid_argument,
          "{} ranks cannot normalize in groups of {}", count, options.batch_norm_ranks);
  return {options.communicator->rank(), count, options.batch_norm_ranks};
}

void check_frozen(const std::vector<std::string>& prefixes, const std::vector<nn::Variable>& variables) {
  for (const std::string& prefix : prefixes) {
    const bool begins_one =
        std::any_of(variables.begin(), variables.end(), [&](const nn::Variable& variable) {
          return variable.role == InputRole::constant && variable.name.starts_with(prefix);
        });
    require(begins_one, ErrorCode::invalid_argument,
            "there is no parameter to freeze whose name begins with '{}'", prefix);
  }
}

// An average moves where no batch reads, too: a row that keeps its value comes nearer to it at every step.
void warn_of_averaged_tables(const std::vector<nn::Variable>& variables) {
  for (const nn::Variable& variable : variables) {
    if (variable.role != InputRole::parameter || !variable.updates_rows) continue;
    log_warning(
        "the moving average of '{}' is updated whole at every step, all of its {} rows, where training "
        "updates "
        "those that a batch reads: ema_decay 0 spares it",
        variable.name, variable.shape.front());
  }
}

// Steps are submitted before the one ahead of them was looked at.
bool is_ahead(const Device& device) {
  return !device.host_accessible();
}

}  // namespace

StepOptions step_options(const TrainerOptions& options, const Device& device, size_t phase,
                         const SymbolBindings& sizes) {
  return {.sizes = sizes,
          .phase = phase_of(options, phase),
          .precision = options.precision.value_or(device.training_precision()),
          .accumulate = options.accumulate,
          .clip_norm = options.clip_norm,
          .ema_decay = options.ema_decay,
          .decay_all = options.decay_all,
          .freeze = options.freeze,
          .ranks = ranks_of(options),
          .shard_optimizer = options.shard_optimizer,
          .reduce_type = options.reduce_type,
          .gradient_delay = options.gradient_delay,
          .local_steps = options.local_steps,
          .halting = is_ahead(device)};
}

Trainer::Trainer(nn::Task task, TrainerOptions options)
    : task_(std::move(task)),
      options_(std::move(options)),
      device_(options_.device != nullptr ? options_.device : Device::open("auto")),
      precision_(options_.precision.value_or(device_->training_precision())),
      variables_(std::make_shared<Variables>(device_)),
      workspace_(std::make_shared<Workspace>(device_)),
      batch_memory_(std::make_shared<BatchMemory>(device_)) {
  require(static_cast<bool>(task_.training), ErrorCode::invalid_argument,
          "the task '{}' says not how it is trained", task_.name);
  declare(all_sizes(task_, options_.sizes));
  check_frozen(options_.freeze, variables_list_);
  if (options_.ema_decay > 0 && rank() == 0) warn_of_averaged_tables(variables_list_);
}

Phase Trainer::phase(size_t index) const {
  return phase_of(options_, index);
}

// Makes the variables of all steps at these sizes that are not there yet.
void Trainer::declare(const SymbolBindings& sizes) {
  variables_list_.clear();
  check_.reset();
  for (size_t index = 0; index < phase_count(); ++index) {
    for (const nn::Variable& variable : build_training_step(task_, step_options(index, sizes)).variables) {
      // Of a run under way, and nothing that the next one depends on.
      if (variable.name == kHaltedState) continue;
      const auto known = std::find_if(variables_list_.begin(), variables_list_.end(),
                                      [&](const nn::Variable& one) { return one.name == variable.name; });
      if (known == variables_list_.end()) variables_list_.push_back(variable);
    }
  }
  const bool is_served = task_.inference || task_.evaluation;
  network_list_ =
      is_served ? build_frozen(task_, Reading::evaluation, sizes).variables : network_variables(task_, sizes);
  // What is remembered of the data is no part of the network.
  std::erase_if(network_list_, [](const nn::Variable& variable) { return variable.advances; });
  for (const nn::Variable& variable : variables_list_) {
    if (variables_->contains(variable.name)) {
      if (variables_->shape(variable.name) == variable.shape) continue;
      require(!begun_ && variable.role == InputRole::state, ErrorCode::invalid_argument,
              "'{}' is {} so far, and {} at the sizes of this data: name them in TrainerOptions::sizes",
              variable.name, to_string(variables_->shape(variable.name)), to_string(variable.shape));
      variables_->erase(variable.name);
    }
    variables_->set(variable.name, starting_value(variable, options_.seed));
  }
  if (works_ahead()) variables_->set(kHaltedState, Tensor(DataType::fp32, {}));
}

StepOptions Trainer::step_options(size_t index, const SymbolBindings& sizes) const {
  return train::step_options(options_, *device_, index, sizes);
}

bool Trainer::works_ahead() const {
  return is_ahead(*device_);
}

CompileOptions Trainer::compile_options() const {
  CompileOptions options;
  options.passes.precision = precision_;
  options.passes.deterministic = options_.deterministic;
  options.passes.recompute = options_.recompute;
  options.passes.bucket_bytes = options_.bucket_bytes;
  options.tune = options_.tune;
  options.tuning_file = options_.tuning_file;
  options.workspace = workspace_;
  if (options_.communicator != nullptr) options.communicators[""] = options_.communicator;
  options.most_collective_blocks = options_.most_collective_blocks;
  return options;
}

// What builds graphs keeps nothing of the trainer, which may be moved.
Trainer::Steps& Trainer::steps(size_t index, StepKind kind) {
  const auto key = std::pair{index, kind};
  if (const auto known = steps_.find(key); known != steps_.end()) return known->second;
  const auto names = std::make_shared<StepNames>();
  const auto build = [task = task_, options = step_options(index, {}), kind,
                      names](const SymbolBindings& sizes) mutable {
    options.sizes = sizes;
    StepGraph step = build_training_step(task, options, kind);
    *names = {step.objective, step.measures};
    return std::move(step.graph);
  };
  Steps steps{ExecutableFamily(device_, build, compile_options()), names};
  steps.family.bind(variables_);
  return steps_.emplace(key, std::move(steps)).first->second;
}

// Compiles them, which is when passes add states.
void Trainer::prepare_steps(size_t index, StepKind kind, const std::vector<SymbolBindings>& sizes) {
  ExecutableFamily& family = steps(index, kind).family;
  family.prepare(sizes);
  for (const SymbolBindings& one : family.sizes()) {
    for (const auto& input : family.at(one)->graph().inputs()) {
      if (input->initial() != nullptr) added_states_.insert(input->name());
    }
  }
}

const Executable& Trainer::step(const SymbolBindings& sizes) {
  return *steps(0, StepKind::updating).family.at(sizes);
}

int64_t Trainer::parameter_count() const {
  int64_t count = 0;
  for (const nn::Variable& variable : variables_list_) {
    if (variable.role != InputRole::state) count += element_count(variable.shape);
  }
  return count;
}

FitResult Trainer::fit(const data::Source& source, const FitOptions& options) {
  try {
    return Fitting(*this, source, options).run();
  } catch (const std::exception& error) {
    distribute::end_all_ranks(communicator(), error);
    throw;
  }
}

std::function<bool(const nn::Variable& variable)> Trainer::is_averaged() const {
  return [variables = variables_, averages = options_.ema_decay > 0](const nn::Variable& variable) {
    return averages && variable.role == InputRole::parameter && variables->contains("ema/" + variable.name);
  };
}

// What the task reads of a batch, which may hold more.
RunFeeds Trainer::inputs_of(const data::Batch& batch) const {
  RunFeeds inputs;
  for (const Field& field : task_.inputs) {
    const auto found = batch.fields.find(field.name);
    if (found != batch.fields.end()) inputs.host.insert(*found);
    const auto there = batch.device_fields.find(field.name);
    if (there != batch.device_fields.end()) inputs.there.insert(*there);
  }
  return inputs;
}

std::optional<std::pair<std::string, double>> Trainer::first_not_finite() {
  if (check_ == nullptr) {
    std::vector<std::string> names;
    for (const nn::Variable& variable : variables_list_) {
      // With a loss scale these may overflow: the step that takes them is skipped.
      if (precision_ != Precision::fp16 || !is_delayed(variable.name)) names.push_back(variable.name);
    }
    check_ = std::make_unique<VariableCheck>(variables_, names, workspace_);
  }
  const std::optional<std::string> broken = check_->first_not_finite();
  if (!broken.has_value()) return std::nullopt;
  const std::vector<double> values = variables_->get(*broken).to_doubles();
  return std::pair{*broken, *std::find_if_not(values.begin(), values.end(),
                                              [](double value) { return std::isfinite(value); })};
}

void Trainer::check_variables() {
  if (const auto broken = first_not_finite()) {
    fail(
        ErrorCode::not_finite,
        "after step {}: '{}' holds {}, though the losses were finite: look at the data and the learning rate",
        position_.step, broken->first, broken->second);
  }
}

void Trainer::explain_not_finite(size_t index, StepKind kind, const SymbolBindings& sizes,
                                 const Feeds& inputs, const std::string& what) {
  const int64_t step = position_.step + 1;
  for (const auto& [name, tensor] : inputs) {
    if (!is_floating(tensor.data_type())) continue;
    const int64_t row = tensor.shape().empty() ? 1 : std::max<int64_t>(tensor.size() / tensor.shape()[0], 1);
    for (int64_t i = 0; i < tensor.size(); ++i) {
      require(std::isfinite(tensor.at(i)), ErrorCode::not_finite,
              "step {}: {} because the input '{}' holds {} in row {} of the batch", step, what, name,
              tensor.at(i), i / row);
    }
  }
  // The step left every variable as it was, so that it can be repeated with a look at each node.
  if (const auto broken = first_not_finite()) {
    fail(ErrorCode::not_finite,
         "step {}: {} because '{}' already holds {}: the update of an earlier step made it", step, what,
         broken->first, broken->second);
  }
  CompileOptions options = compile_options();
  options.check_finite = true;
  const StepGraph step_graph = build_training_step(task_, step_options(index, sizes), kind);
  const auto checked = compile(*step_graph.graph, device_, options);
  checked->bind(variables_);
  try {
    checked->run(inputs);
  } catch (const Error& error) {
    fail(error.code(), "step {}: {}: {}", step, what, error.what());
  }
  fail(ErrorCode::not_finite, "step {}: {}", step, what);
}

// Evaluators that read what is served do so from the same executables.
Reading Trainer::what_is_read(Reading reading) const {
  return !task_.evaluation && task_.inference ? Reading::inference : reading;
}

ExecutableFamily& Trainer::frozen(Reading reading) {
  const auto known = frozen_.find(reading);
  if (known != frozen_.end()) return known->second;
  CompileOptions options = compile_options();
  options.passes.frozen = true;
  const auto build = [task = task_, reading, averaged = is_averaged(),
                      ranks = ranks_that_read(reading)](const SymbolBindings& sizes) {
    return build_frozen(task, reading, sizes, averaged, ranks).graph;
  };
  return frozen_.emplace(reading, ExecutableFamily(device_, build, options)).first->second;
}

// What is evaluated is each rank's part of the batches, what is served is whole.
nn::Ranks Trainer::ranks_that_read(Reading reading) const {
  return reading == Reading::evaluation ? ranks_of(options_) : nn::Ranks{};
}

// Those that advance: all others are the network's own.
void Trainer::begin_read_states(Reading reading, const std::vector<SymbolBindings>& sizes) {
  for (const SymbolBindings& size : sizes) {
    std::vector<nn::Variable> states =
        build_frozen(task_, reading, size, {}, ranks_that_read(reading)).variables;
    std::erase_if(states, [](const nn::Variable& variable) { return !variable.advances; });
    if (begin_states(*variables_, states)) frozen_.erase(reading);
  }
}

int64_t Trainer::evaluate(const data::Source& source, Evaluator& evaluator, const EvaluationLimits& limits) {
  const auto receive = [&](const data::Batch& batch, const Feeds& outputs) { evaluator.add(batch, outputs); };
  const int64_t samples = pass(Reading::evaluation, source, receive, limits, communicator());
  if (limits.stop == nullptr || !*limits.stop)
    evaluator.finish([this](const nn::Task& task) { return serve(task); });
  if (communicator() == nullptr) return samples;
  std::vector<Feeds> states = distribute::gather_tensors(*communicator(), evaluator.state());
  states.erase(states.begin() + rank());
  for (const Feeds& state : states) evaluator.merge(state);
  return samples;
}

int64_t Trainer::predict(const data::Source& source, const OutputReceiver& receive,
                         const EvaluationLimits& limits) {
  return pass(Reading::inference, source, receive, limits);
}

Feeds Trainer::predict(const data::Source& source, const EvaluationLimits& limits) {
  PredictionTable table;
  const auto receive = [&](const data::Batch& batch, const Feeds& outputs) {
    table.add(batch, outputs, rows_of(inputs_of(batch), batch.samples));
  };
  pass(Reading::inference, source, receive, limits);
  return table.outputs();
}

std::shared_ptr<Executable> Trainer::served(const SymbolBindings& sizes) {
  begin_read_states(Reading::inference, {sizes});
  ExecutableFamily& family = frozen(Reading::inference);
  const LongWork compiling;
  family.bind(variables_);
  return family.at(sizes);
}

ExecutableFamily Trainer::serve(const nn::Task& task) {
  return train::serve(task, variables_, compile_options(), is_averaged());
}

int64_t Trainer::pass(Reading reading, const data::Source& source, const OutputReceiver& receive_outputs,
                      const EvaluationLimits& limits, Communicator* communicator) {
  struct Submitted {
    data::Batch batch;
    std::shared_ptr<Executable> executable;
  };
  require(limits.samples > 0 || limits.stop != nullptr || source.batches(0).has_value(),
          ErrorCode::invalid_argument, "the data of {} does not end: say how many {} are wanted", task_.name,
          task_.samples);
  reading = what_is_read(reading);
  begin_read_states(reading, source.sizes());
  ExecutableFamily& family = frozen(reading);
  {
    const LongWork compiling;
    family.bind(variables_);  // the weights have changed: folded and packed ones are made anew
    family.prepare(source.sizes());
  }
  // One batch ahead, so that a device has work while the host reads.
  PassCounter counter(communicator, limits);
  const std::unique_ptr<data::Stream> stream = source.open_into(batch_memory_, {}, counter.partition());
  std::optional<Submitted> under_way;
  const auto receive = [&](const Submitted& one) { receive_outputs(one.batch, one.executable->receive()); };
  while (!counter.done()) {
    std::optional<data::Batch> batch = stream->next();
    if (!batch.has_value()) break;
    note_progress();
    std::shared_ptr<Executable> executable = family.at(batch->sizes);
    const RunFeeds inputs = inputs_of(*batch);
    executable->submit(inputs.host, inputs.there);
    if (under_way.has_value()) receive(*under_way);
    // What is beyond the limit fills the batch, as what is beyond the end of the data does.
    batch->samples = counter.count(batch->samples);
    if (std::ssize(batch->indices) > batch->samples)
      batch->indices.resize(static_cast<size_t>(batch->samples));
    under_way = {std::move(*batch), std::move(executable)};
  }
  if (under_way.has_value()) receive(*under_way);
  return counter.samples();
}

}  // namespace tessera::train
