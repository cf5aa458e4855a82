// The training loop: steps, evaluation, checkpoints, resumption.
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "tessera/compile/executable.h"
#include "tessera/data/loader.h"
#include "tessera/optim/schedule.h"
#include "tessera/train/checkpoint.h"
#include "tessera/train/evaluate.h"
#include "tessera/train/step.h"
#include "tessera/train/summary.h"

namespace tessera::train {

struct TrainerOptions {
  nn::Loss loss = nn::cross_entropy();
  optim::Optimizer optimizer = optim::sgd();
  std::optional<Precision> precision = {};  // unset: Device::training_precision()
  std::shared_ptr<Device> device = {};      // none: the fastest present
  uint64_t seed = 1;                        // of starting values and dropout; the loader has its own
  int64_t accumulate = 1;
  double clip_norm = 0;
  double ema_decay = 0;
  bool decay_all = false;
  bool deterministic = true;           // PassOptions::deterministic: the same bits at every run
  std::optional<bool> recompute = {};  // PassOptions::recompute: less memory, the same numbers
  bool tune = false;
  std::string tuning_file = {};
};

// Where a run stands. `batch` counts within the epoch.
struct Position {
  int64_t epoch = 0;
  int64_t batch = 0;
  int64_t step = 0;  // updates made
};

struct StepEvent {
  Position position;  // after the step
  double loss = 0;
  double accuracy = 0;  // of this batch, 0..1
  double learning_rate = 0;
  double images_per_second = 0;  // of this step
};

struct FitOptions {
  int64_t epochs = 1;
  std::function<optim::Schedule(int64_t total_steps, int64_t steps_per_epoch)> schedule =
      {};                                    // none: constant
  const data::Loader* evaluation = nullptr;  // must not drop its last batch
  int64_t evaluate_every = 1;                // epochs; 0: after the last only
  // Folder for last.safetensors, best.safetensors and those that are kept; empty: none. The state is saved
  // when any of the three is due, after the last epoch and when fit() is stopped. One that cannot be written,
  // but for the last, is a warning, and the next one is tried.
  std::filesystem::path checkpoints = {};
  int64_t checkpoint_every = 1;   // epochs; 0: not by epochs
  int64_t checkpoint_steps = 0;   // updates; 0: not by updates
  double checkpoint_minutes = 0;  // since the last one; 0: not by time
  int64_t keep_checkpoints = 1;  // last.safetensors and those before it, as step-00001234.safetensors; 0: all
  int64_t max_steps = 0;         // stop, as if interrupted, after so many updates in all; 0: no limit
  // Set from a signal handler: the step is finished, or the evaluation broken off, then fit() saves.
  const std::atomic<bool>* stop = nullptr;
  std::map<std::string, std::string> metadata = {};  // kept in the checkpoints
  std::vector<SettingChange> changes = {};  // of settings, made at this position: kept in the history
  // Called when all is checked and compiled, before the first step: what is refused is refused ahead of it.
  std::function<void()> on_begin = {};
  // On a device that works beside the host the step behind this one is under way: what the trainer saves
  // there may hold that update already. Nothing is under way at the end of an epoch.
  std::function<void(const StepEvent&)> on_step = {};
  std::function<void(const EpochRow&)> on_epoch = {};
};

struct FitResult {
  bool completed = true;  // false: stopped by `stop` or max_steps
  Position position;
  RunHistory history;
  Evaluation evaluation;  // the last one; empty without an evaluation loader
};

class Trainer {
 public:
  explicit Trainer(models::Model model, TrainerOptions options = {});

  // Trains from the present position on. Throws Error(not_finite) naming the input, variable or node that had
  // the first NaN or infinity when a loss or a measured gradient norm is not finite (fp16: still not after
  // the loss scale has fallen to 1); the variables are then those of the step before. At the end of an epoch,
  // and before anything is saved, a variable that is not finite is found as well.
  FitResult fit(const data::Loader& loader, const FitOptions& options);

  // Breaks off, with what it has, when `stop` is set.
  Evaluation evaluate(const data::Loader& loader, const std::atomic<bool>* stop = nullptr);

  // Parameters and running statistics, or their moving averages, in torchvision's layout: for inference and
  // exchange.
  Checkpoint checkpoint() const;
  // Starting weights from such a file; the classifier must fit.
  void load_weights(const std::filesystem::path& path);

  // Everything that the next step depends on, bit for bit. A state of another precision is taken up too; the
  // loss scale of fp16 then begins anew or ends.
  Checkpoint training_state() const;
  void restore(const Checkpoint& state, const std::string& source);

  const models::Model& model() const { return model_; }
  Device& device() const { return *device_; }
  // What was asked for, or else the device's own.
  Precision precision() const { return precision_; }
  int64_t parameter_count() const;
  // The training step for batches of that size, compiled.
  const Executable& step(int64_t batch);

 private:
  // A step whose outputs were not received yet.
  struct SubmittedStep {
    Executable* executable = nullptr;
    bool updating = false;
    double learning_rate = 0;
    std::map<std::string, Tensor> inputs;
    Position position = {};  // behind it
  };

  void prepare(int64_t batch);
  bool works_ahead() const;
  SubmittedStep submit(const data::Batch& batch, Position position, double learning_rate);
  void forget_failure();
  StepOptions step_options(int64_t batch) const;
  CompileOptions compile_options() const;
  void check_finite(const std::map<std::string, Tensor>& inputs, const std::map<std::string, Tensor>& outputs,
                    bool updating);
  std::optional<std::pair<std::string, double>> first_not_finite() const;  // variable and value
  void check_variables() const;
  std::map<std::string, Tensor> tensors_for_precision(const Checkpoint& state) const;
  [[noreturn]] void explain_not_finite(const std::map<std::string, Tensor>& inputs, bool updating,
                                       const std::string& what);

  models::Model model_;
  TrainerOptions options_;
  std::shared_ptr<Device> device_;
  Precision precision_;
  std::vector<nn::Variable> variables_list_;  // of the training step
  std::vector<nn::Variable> network_list_;    // of the network alone
  std::shared_ptr<Variables> variables_;
  int64_t batch_ = 0;
  std::unique_ptr<Executable> update_step_;
  std::unique_ptr<Executable> accumulate_step_;
  std::unique_ptr<Executable> evaluation_;
  int64_t evaluation_batch_ = 0;
  Position position_;
  RunHistory history_;
  double best_accuracy_ = -1;
  int64_t skipped_ = 0;  // steps in a row whose gradients overflowed
};

}  // namespace tessera::train
