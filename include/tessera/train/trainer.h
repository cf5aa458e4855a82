// The training loop: steps, evaluation, checkpoints, resumption.
#pragma once

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "tessera/compile/batch_memory.h"
#include "tessera/compile/communicator.h"
#include "tessera/compile/executable_family.h"
#include "tessera/compile/variable_check.h"
#include "tessera/train/checkpoint.h"
#include "tessera/train/evaluator.h"
#include "tessera/train/history.h"
#include "tessera/train/prediction.h"
#include "tessera/train/step.h"

namespace tessera::train {

struct TrainerOptions {
  optim::Optimizer optimizer = optim::sgd();  // of all parameters, where there are no phases
  std::vector<Phase> phases = {};             // in turn; empty: one, of the task's only objective
  std::optional<Precision> precision = {};    // unset: Device::training_precision()
  std::shared_ptr<Device> device = {};        // none: the fastest present
  uint64_t seed = 1;                          // of starting values and dropout; the source has its own
  int64_t accumulate = 1;                     // batches of each step
  double clip_norm = 0;
  double ema_decay = 0;
  bool decay_all = false;
  // What names of variables begin with that stay as they are, as nn::Context::freeze() has it: for fine
  // tuning of weights that were loaded.
  std::vector<std::string> freeze = {};
  bool deterministic = true;           // PassOptions::deterministic: the same bits at every run
  std::optional<bool> recompute = {};  // PassOptions::recompute: less memory, the same numbers
  bool tune = false;
  std::string tuning_file = {};
  // Of the task's symbols, for states whose shape depends on them; symbols that are left out are 1.
  SymbolBindings sizes = {};
  // Of the ranks that train together, each with a trainer like this one; none: alone. The source gives each
  // its part of every batch.
  std::shared_ptr<Communicator> communicator = {};
  int64_t batch_norm_ranks = 1;           // nn::Ranks::batch_norm_ranks
  bool shard_optimizer = false;           // StepOptions::shard_optimizer: less memory, the same updates
  DataType reduce_type = DataType::fp32;  // StepOptions::reduce_type
  int64_t gradient_delay = 0;             // StepOptions::gradient_delay
  // Each rank trains by itself, and after every so many steps what they have becomes the mean of all; so it
  // does before anything is evaluated or saved, and at the end of an epoch and of the run. 1: after every
  // step they have the same. See StepOptions::local_steps.
  int64_t local_steps = 1;
  std::optional<int64_t> bucket_bytes = {};  // PassOptions::bucket_bytes: of the gradients
  int64_t most_collective_blocks = 0;        // CompileOptions::most_collective_blocks
};

// What the steps of such a trainer are built with: those of a phase, by its place, at these sizes on that
// device.
StepOptions step_options(const TrainerOptions& options, const Device& device, size_t phase,
                         const SymbolBindings& sizes);

// Of a run that goes on with other data, sizes or rates: which part of it this is, and where that began.
struct Stage {
  int64_t index = 0;  // 0 for the first
  int64_t epoch = 0;
  int64_t step = 0;
};

// Where a run stands. Epochs and steps are counted over all of its stages.
struct Position {
  int64_t epoch = 0;
  int64_t batch = 0;        // within the epoch
  int64_t step = 0;         // steps made: an update of each phase, as often as it repeats
  std::string source = {};  // data::Cursor::state
  Stage stage = {};
};

// What a stage takes over of the optimizer's state, beside the weights.
enum class Carried {
  all,      // as if nothing had happened
  moments,  // but steps are counted anew for the correction of the moments' bias
};

struct StepEvent {
  Position position;              // after the step, or within it where several batches make one
  Numbers measures;               // of the objectives and metrics in this batch, in a local step the rank's
  double learning_rate = 0;       // of the first group of the first phase
  double samples_per_second = 0;  // of this step
};

// An evaluation that somebody else is to make, of weights as they are now.
struct DueEvaluation {
  std::string name = {};  // of its plan
  int64_t step = 0;
  double epoch = 0;  // as EvaluationRow::epoch
  Stage stage = {};
  bool last = false;              // of the training, or of its stage
  CheckpointSource weights = {};  // Trainer::checkpoint_source()
};

// What is evaluated, and when.
struct EvaluationPlan {
  std::string name = "test";
  const data::Source* source = nullptr;
  EvaluatorMaker evaluator = {};
  // In place of source and evaluator: is told of each evaluation that is due, on every rank. Training then
  // chooses no best weights.
  std::function<void(const DueEvaluation& due)> elsewhere = {};
  int64_t every_epochs = 1;  // 0: not by epochs; after the last in any case
  int64_t every_steps = 0;   // 0: not by steps
  int64_t samples = 0;       // the first so many; 0: all
};

// Epochs and steps are those of the stage in which the trainer is, where nothing else is said.
struct FitOptions {
  int64_t epochs = 1;
  int64_t steps = 0;            // in place of epochs, as where the data does not end
  ScheduleMaker schedule = {};  // of groups that have none; none: constant
  std::vector<EvaluationPlan> evaluations = {};
  // Which metric of the first evaluation makes weights the best so far; empty: the first one of the task that
  // it has.
  std::string goal = {};
  // Folder for last.safetensors, best.safetensors and those that are kept; empty: none. The state is saved
  // when any of the three is due, after the last epoch and when fit() is stopped. One that cannot be written,
  // but for the last, is a warning, and the next one is tried.
  std::filesystem::path checkpoints = {};
  int64_t checkpoint_every = 1;   // epochs; 0: not by epochs
  int64_t checkpoint_steps = 0;   // steps; 0: not by steps
  double checkpoint_minutes = 0;  // since the last one; 0: not by time
  int64_t keep_checkpoints = 1;  // last.safetensors and those before it, as step-00001234.safetensors; 0: all
  int64_t max_steps = 0;         // stop, as if interrupted, after so many steps of all stages; 0: no limit
  // Set from a signal handler: the step is finished, or the evaluation broken off, then fit() saves.
  const std::atomic<bool>* stop = nullptr;
  std::map<std::string, std::string> metadata = {};  // kept in the checkpoints
  std::vector<SettingChange> changes = {};  // of settings, made at this position: kept in the history
  // Called when all is checked and compiled, before the first step: what is refused is refused ahead of it.
  std::function<void()> on_begin = {};
  // On a device that works beside the host the step after this one is under way: what the trainer saves
  // there may hold that update already. Nothing is under way at the end of an epoch.
  std::function<void(const StepEvent&)> on_step = {};
  // With the evaluations at its end.
  std::function<void(const EpochRow&, const std::vector<EvaluationRow>&)> on_epoch = {};
};

struct FitResult {
  bool completed = true;  // false: stopped by `stop` or max_steps
  Position position;
  RunHistory history;
  // The last evaluation of each plan; empty where there was none.
  std::vector<std::unique_ptr<Evaluator>> evaluations;
};

class Trainer {
 public:
  explicit Trainer(nn::Task task, TrainerOptions options = {});

  // Trains from the present position on; of several ranks all do, with the same options, and save together,
  // into the folder of rank 0. What one of them throws ends all: the others throw Error(rank_failure) with
  // its message. Throws Error(not_finite) naming the input, variable or node that had the first NaN or
  // infinity when an objective or a measured gradient norm is not finite (fp16: still not after the loss
  // scale has fallen to 1); the variables are then those of the step before. At the end of an epoch, and
  // before anything is saved, a variable that is not finite is found as well.
  FitResult fit(const data::Source& source, const FitOptions& options);

  // One pass over an epoch of the source; returns how many samples it saw. Several ranks see a part each, and
  // the evaluator of each then merges what the others saw, in the order of the ranks after its own. Throws
  // Error(invalid_argument) where the source does not end and nothing limits the pass.
  int64_t evaluate(const data::Source& source, Evaluator& evaluator, const EvaluationLimits& limits = {});

  // The same of what the task serves, its `inference`, for whoever receives it; each rank for itself. Throws
  // Error(invalid_argument) when the task serves nothing.
  int64_t predict(const data::Source& source, const OutputReceiver& receive,
                  const EvaluationLimits& limits = {});
  // All of it, by name: [samples, ...]. Throws as PredictionTable::add().
  Feeds predict(const data::Source& source, const EvaluationLimits& limits = {});
  // What computes it for batches of these extents, with the weights as they are now; for runs one after
  // another, until the trainer does something else.
  std::shared_ptr<Executable> served(const SymbolBindings& sizes);
  // train::serve() of another task of this network, such as its passes over a row of text, with the weights
  // as they are now.
  ExecutableFamily serve(const nn::Task& task);

  // Parameters and running statistics, or their moving averages, in torchvision's layout: for inference and
  // exchange.
  Checkpoint checkpoint() const { return read(checkpoint_source()); }
  // For save(), which then holds one tensor at a time on the host. Valid until the next step, or
  // load_weights() or restore().
  CheckpointSource checkpoint_source() const;
  // Starting weights from such a file, which must hold all that the network has.
  void load_weights(const std::filesystem::path& path);
  // The same of tensors that messages call `source`; variables that they lack stay as they are.
  void load_weights(std::map<std::string, Tensor> tensors, const std::string& source);

  // Everything that the next step depends on, bit for bit, whole on every rank: where ranks share out the
  // optimizer's state, or have delayed gradients each of its own, all ask for it. Of the latter it has the
  // sums over ranks; after local steps it is the rank's own until the next average. A state of another
  // precision, or of another number of ranks, is taken up too; the loss scale of fp16 then begins anew or
  // ends.
  Checkpoint training_state() const { return read(training_state_source()); }
  CheckpointSource training_state_source() const;  // as checkpoint_source()
  void restore(const Checkpoint& state, const std::string& source);
  // The same for what does not train on: what the network remembered of its batch's rows begins anew.
  void restore_to_read(const Checkpoint& state, const std::string& source);
  // Goes on as the next stage of a training that is not this trainer's, by the state with which that ended:
  // with other data, sizes, rates or number of accumulated batches. Weights, averages and what the optimizer
  // keeps are taken over, what is remembered of the data is not; schedules and the search for the best
  // weights begin anew. Throws as restore().
  void begin_stage(const Checkpoint& state, const std::string& source, Carried carried = Carried::moments);

  const nn::Task& task() const { return task_; }
  Device& device() const { return *device_; }
  // What was asked for, or else the device's own.
  Precision precision() const { return precision_; }
  int64_t parameter_count() const;
  const Position& position() const { return position_; }
  // The updating step of the first phase at these sizes, compiled; valid until the trainer does something
  // else.
  const Executable& step(const SymbolBindings& sizes);
  // Of all that it has compiled.
  const Workspace& workspace() const { return *workspace_; }

 private:
  friend class Fitting;

  struct StepNames {
    std::string objective;
    std::vector<std::string> measures;
  };
  struct Steps {
    ExecutableFamily family;
    std::shared_ptr<const StepNames> names;  // the same at all sizes; known with the first of them
  };

  int64_t rank() const { return communicator() == nullptr ? 0 : communicator()->rank(); }
  bool is_local() const { return options_.local_steps > 1 && ranks() > 1; }
  int64_t ranks() const { return communicator() == nullptr ? 1 : communicator()->size(); }
  Communicator* communicator() const { return options_.communicator.get(); }
  size_t phase_count() const { return std::max<size_t>(options_.phases.size(), 1); }
  Phase phase(size_t index) const;  // as all that take an index, of the phases in their order
  void declare(const SymbolBindings& sizes);
  bool works_ahead() const;
  StepOptions step_options(size_t index, const SymbolBindings& sizes) const;
  CompileOptions compile_options() const;
  Steps& steps(size_t index, StepKind kind);
  void prepare_steps(size_t index, StepKind kind, const std::vector<SymbolBindings>& sizes);
  Reading what_is_read(Reading reading) const;
  ExecutableFamily& frozen(Reading reading);
  nn::Ranks ranks_that_read(Reading reading) const;
  void begin_read_states(Reading reading, const std::vector<SymbolBindings>& sizes);
  int64_t pass(Reading reading, const data::Source& source, const OutputReceiver& receive,
               const EvaluationLimits& limits, Communicator* communicator = nullptr);
  RunFeeds inputs_of(const data::Batch& batch) const;
  std::optional<std::pair<std::string, double>> first_not_finite();  // variable and value
  void check_variables();
  void restore_added_states(const std::map<std::string, Tensor>& states);
  void take_weights(const std::map<std::string, Tensor>& tensors, const std::string& source);
  void bind_again();
  void clear_sums();
  std::string optimizer_names() const;
  std::map<std::string, Tensor> tensors_of(const Checkpoint& state, std::map<std::string, Tensor> tensors,
                                           const Position& position) const;
  void restore(const Checkpoint& state, const std::string& source, std::map<std::string, Tensor> tensors);
  std::function<bool(const nn::Variable& variable)> is_averaged() const;
  [[noreturn]] void explain_not_finite(size_t index, StepKind kind, const SymbolBindings& sizes,
                                       const Feeds& inputs, const std::string& what);

  nn::Task task_;
  TrainerOptions options_;
  std::shared_ptr<Device> device_;
  Precision precision_;
  std::vector<nn::Variable> variables_list_;  // of the training steps
  std::vector<nn::Variable> network_list_;    // of the network alone
  std::set<std::string> added_states_;        // that passes added to the steps, with values to start from
  std::shared_ptr<Variables> variables_;
  std::shared_ptr<Workspace> workspace_;  // of all that is compiled here: the trainer runs one at a time
  std::shared_ptr<BatchMemory> batch_memory_;
  std::unique_ptr<VariableCheck> check_;                // of variables_list_, from its first use on
  std::map<std::pair<size_t, StepKind>, Steps> steps_;  // by phase
  std::map<Reading, ExecutableFamily> frozen_;          // of the network alone, as it was last bound
  bool begun_ = false;  // trained, restored or loaded: what the variables hold matters
  Position position_;
  RunHistory history_;
  std::optional<double> best_;  // of the goal
};

}  // namespace tessera::train
