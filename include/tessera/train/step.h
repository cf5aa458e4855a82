// The graphs that training runs: the whole step of a phase as one graph, and evaluation.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tessera/compile/executable_family.h"
#include "tessera/compile/feeds.h"
#include "tessera/passes/pass.h"
#include "tessera/train/phase.h"

namespace tessera::train {

struct StepOptions {
  SymbolBindings sizes = {{"batch", 32}};
  Phase phase = {};
  Precision precision = Precision::fp32;
  int64_t accumulate = 1;                // batches whose gradients together make one update
  double clip_norm = 0;                  // 0: off
  double ema_decay = 0;                  // 0: off
  bool decay_all = false;                // weight decay also on biases and normalization
  std::vector<std::string> freeze = {};  // nn::Context::freeze(): what names of variables begin with
  nn::Ranks ranks = {};                  // of which each trains on its own part of every batch
  // Each rank updates a part of every parameter, and has the optimizer's states of that part alone (ZeRO
  // stage 1). Of tables that are updated by rows each has all.
  bool shard_optimizer = false;
  // In which gradients travel between ranks: bf16 and, with the precision fp16, fp16 take half the time. Each
  // rank's part is rounded to it, and their sum as the communicator does; rows of tables stay as they are.
  DataType reduce_type = DataType::fp32;
  // 1: the update is made with the gradients of the step before, whose exchange over ranks needs nothing of
  // this step and can go on beside its forward and backward pass (Agarwal and Duchi, "Distributed Delayed
  // Stochastic Optimization", 2011, with a delay that is the same at every step); 0: with this step's.
  int64_t gradient_delay = 0;
  // More than 1: local SGD (Stich, "Local SGD Converges Fast and Communicates Little", 2019). An updating
  // step is of this rank alone, an averaging one ends with the means of all ranks.
  int64_t local_steps = 1;
  // A step that must not be trained on from (an objective that is not finite, without a loss scale also a
  // gradient norm) sets the state kHaltedState to 1, with which no later step changes a variable: those that
  // were enqueued before anybody looked.
  bool halting = false;
};

enum class StepKind : uint8_t {
  accumulating,  // adds the batch's gradients to the states "<parameter>/accumulated", which the next one
                 // takes
  updating,
  averaging,  // of local SGD: updating, after which parameters, optimizer's and running states are averaged
};

inline constexpr const char* kHaltedState = "halted";
// Of fp16 alone, with the phase's name and a slash before them.
inline constexpr const char* kLossScaleState = "loss_scale";
inline constexpr const char* kOptimizerStepState = "optimizer_step";
inline constexpr const char* kLossScaleStepsState = "loss_scale_good_steps";
// With accumulation: what the sums of gradients are called after their parameters, and the weight of the
// objective in the batches so far.
inline constexpr const char* kAccumulatedState = "/accumulated";
inline constexpr const char* kAccumulatedWeightState = "accumulated_weight";
// With delayed gradients: this rank's sums in the step before, the weight of its objective, and of how many
// steps they are: 0 or 1, the same on all ranks.
inline constexpr const char* kDelayedState = "/delayed";
inline constexpr const char* kDelayedWeightState = "delayed_weight";
inline constexpr const char* kDelayedStepsState = "delayed_steps";

// Whether a state of that name is a sum of what batches gave, or its weight: each rank has its own, and what
// counts is the sum over ranks.
bool is_accumulated(const std::string& name);
bool is_delayed(const std::string& name);

// Every symbol of the task's inputs, with its size or 1.
SymbolBindings all_sizes(const nn::Task& task, SymbolBindings sizes = {});

// A graph, and the variables it reads, with their starting values and file layouts.
struct StepGraph {
  std::unique_ptr<Graph> graph;
  std::vector<nn::Variable> variables;
  std::string objective = {};              // of the step, and
  std::vector<std::string> measures = {};  // all that it measures, the objective first
};

// The outputs of a step that hold a measure, fp32 [].
std::string sum_output(const std::string& measure);
std::string weight_output(const std::string& measure);
// The measure's mean, from what a step gave.
double mean_of(const Feeds& outputs, const std::string& measure);

// Forward, objective, backward, update and metrics in one graph.
//   inputs:  those of the task; of the updating step the learning rate of each group, fp32 []
//   outputs: for each measure its sum and weight, and with clipping or fp16 gradient_norm fp32 [] (before
//   clipping)
// The gradient is that of the objective's mean: its sum's, divided by its weight in all accumulated batches.
// Of several ranks it is that of all their batches together: all ranks have the same gradients and measures,
// make the same updates, and states that the network updates are the means of the ranks'. Of accumulated
// batches only the updating step exchanges gradients, and only its measures are those of all ranks' last
// batches; an accumulating one's are its own. With shard_optimizer gradients are summed part by part
// (reduce_scatter), and the parts of the updated parameters gathered; Error(invalid_argument) for an
// optimizer that needs whole parameters. A step whose objective is not finite changes no variable, so that it
// can be run again to find the node that made it. With fp16 the objective is scaled by the state
// "loss_scale", which halves after an overflow and doubles after 2000 good steps; a step whose gradients
// overflow is skipped, with what was accumulated for it.
//
// With gradient_delay the update takes the gradients of the step before and this step's learning rate, and
// waits for no other rank's part of this step: measures and the network's states are exchanged last. The
// first step changes no parameter and no state of the optimizer. Each rank judges by its own objective: where
// one is not finite that rank's variables alone stay as they are, and the others make no update after this
// one. Gradients that overflow in fp16 lower the loss scale one step later; the network's states change
// nevertheless.
//
// With local_steps of more than 1 and several ranks an updating step has no exchange, and its measures are
// the rank's own. An averaging one's are those of all ranks, and everything that it updates becomes the mean
// of the ranks', but for the loss scale, which becomes the least. A rank whose gradients overflow in fp16
// skips its own update alone.
//
// Throws Error(invalid_argument) when the task has not the objective or the groups take no parameter; on
// another gradient_delay than 0 and 1, or one with local_steps or of a table that is updated by rows; on
// local_steps with shard_optimizer or Ranks::batch_norm_ranks; on another reduce_type, or fp16 without a loss
// scale.
StepGraph build_training_step(const nn::Task& task, const StepOptions& options,
                              StepKind kind = StepKind::updating);

// What of a network is read that is not trained: what an evaluator reads, or what is served.
enum class Reading { evaluation, inference };

// inputs:  those of the task that are read
// outputs: what its `evaluation`, or else its `inference`, gives; the latter alone where that is asked for
// Parameters that are `averaged` are their moving averages, named "ema/<parameter>". `kept`:
// nn::Context::keep_in(). Throws Error(invalid_argument) when the task has neither.
StepGraph build_frozen(const nn::Task& task, Reading reading, const SymbolBindings& sizes,
                       const std::function<bool(const nn::Variable&)>& averaged = {},
                       const nn::Ranks& ranks = {}, DataType kept = DataType::fp32);

// What computes the inference of a task at any sizes, on variables that hold its parameters, with
// PassOptions::frozen. What its passes keep of tokens is in the precision's type. Its states are made, or
// made anew where they have another shape or type: what was compiled for them before must not run any more.
ExecutableFamily serve(const nn::Task& task, const std::shared_ptr<Variables>& variables,
                       CompileOptions options = {},
                       const std::function<bool(const nn::Variable&)>& averaged = {});

// The inference of build_frozen() at any size: the symbols of the task's inputs stay. For those who hand it
// on.
StepGraph build_served(const nn::Task& task);

}  // namespace tessera::train
