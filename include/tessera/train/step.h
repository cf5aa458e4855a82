// The graphs that training runs: the whole step as one graph, and evaluation.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tessera/models/model.h"
#include "tessera/nn/loss.h"
#include "tessera/optim/optimizer.h"
#include "tessera/passes/pass.h"

namespace tessera::train {

struct StepOptions {
  int64_t batch = 32;
  nn::Loss loss = nn::cross_entropy();
  optim::Optimizer optimizer = optim::sgd();
  Precision precision = Precision::fp32;
  int64_t accumulate = 1;  // batches whose mean gradient makes one update
  double clip_norm = 0;    // 0: off
  double ema_decay = 0;    // 0: off
  bool decay_all = false;  // weight decay also on biases and normalization
  // A step that must not be trained on from (a loss that is not finite, without a loss scale also a gradient
  // norm) sets the state kHaltedState to 1, with which no later step changes a variable: those that were
  // enqueued before anybody looked.
  bool halting = false;
};

inline constexpr const char* kHaltedState = "halted";
// Of fp16 alone.
inline constexpr const char* kLossScaleState = "loss_scale";
inline constexpr const char* kLossScaleStepsState = "loss_scale_good_steps";

// A graph, and the variables it reads, with their starting values and file layouts.
struct StepGraph {
  std::unique_ptr<Graph> graph;
  std::vector<nn::Variable> variables;
};

// Forward, loss, backward, update and metrics in one graph.
//   inputs:  images fp32 [batch, H, W, C], labels int32 [batch], learning_rate fp32 [] (the updating step
//   only) outputs: loss fp32 [] (mean over the batch), correct fp32 [] (rows whose largest logit is the
//   label's), and with
//            clipping or fp16 gradient_norm fp32 [] (before clipping)
// A step whose loss is not finite changes no variable, so that it can be run again to find the node that made
// it. With fp16 the loss is scaled by the state "loss_scale", which halves after an overflow and doubles
// after 2000 good steps; a step whose gradients overflow is skipped, with what was accumulated for it.
StepGraph build_training_step(const models::Model& model, const StepOptions& options);

// The same without the update: adds the gradients to the states "<parameter>/accumulated", which the updating
// step takes and clears.
StepGraph build_accumulating_step(const models::Model& model, const StepOptions& options);

// inputs:  images fp32 [batch, H, W, C], labels int32 [batch]; rows with label -1 only fill the batch
// outputs: loss fp32 [batch] (what is trained, of each example; 0 in filling rows), prediction int32 [batch],
//          confidence fp32 [batch]
// With `averaged` the parameters are their moving averages, named "ema/<parameter>".
StepGraph build_evaluation(const models::Model& model, const nn::Loss& loss, int64_t batch,
                           bool averaged = false);

}  // namespace tessera::train
