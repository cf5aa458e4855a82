#include "tessera/train/step.h"

#include <unordered_set>

#include "tessera/ops/functions.h"
#include "tessera/passes/differentiate.h"

namespace tessera::train {
namespace {

constexpr double kInitialLossScale = 65536;
constexpr double kLossScaleGrowthSteps = 2000;

struct ParameterGradient {
  nn::Variable variable;
  Value* parameter;
  Value* gradient;
};

class StepBuilder {
 public:
  StepBuilder(const models::Model& model, const StepOptions& options)
      : model_(model),
        options_(options),
        graph_(std::make_unique<Graph>(model.name + "_training")),
        context_(*graph_, nn::Mode::training) {}

  StepGraph build(bool updating) {
    forward();
    backward();
    if (updating) {
      update();
    } else {
      accumulate();
    }
    guard_updates();
    return {std::move(graph_), context_.variables()};
  }

 private:
  void forward() {
    Value* images = graph_->add_input(InputRole::input, "images", model_.input_type(options_.batch));
    Value* labels = graph_->add_input(InputRole::input, "labels", {DataType::int32, {options_.batch}});
    Value* logits = model_.forward(context_, images);
    loss_ = options_.loss.build(logits, labels);
    Value* hits = ops::cast(ops::equal(ops::argmax(logits), labels), DataType::fp32);
    graph_->add_output("loss", loss_);
    graph_->add_output("correct", ops::reduce_sum(hits));
    if (Value* counter = graph_->find_input("random_counter")) {
      context_.update(counter, ops::add(counter, ops::constant(*graph_, Tensor::from<int64_t>({2}, {0, 1}))));
    }
  }

  void backward() {
    const bool scaled = options_.precision == Precision::fp16;
    if (scaled) loss_scale_ = context_.state(kLossScaleState, {}, nn::constant(kInitialLossScale));
    std::vector<Value*> parameters;
    for (const nn::Variable& variable : context_.variables()) {
      if (variable.role != InputRole::parameter) continue;
      parameters.push_back(graph_->find_input(variable.name));
      gradients_.push_back({variable, parameters.back(), nullptr});
      gradients_.back().variable.decays |= options_.decay_all;
    }
    const std::vector<Value*> gradients = differentiate(*graph_, loss_, parameters, loss_scale_);
    Value* factor = scaled ? ops::reciprocal(loss_scale_) : nullptr;
    if (options_.accumulate > 1) {
      const double share = 1.0 / static_cast<double>(options_.accumulate);
      factor = factor == nullptr ? ops::constant_like(loss_, share) : ops::multiply(factor, share);
    }
    for (size_t i = 0; i < gradients.size(); ++i) {
      gradients_[i].gradient = factor == nullptr ? gradients[i] : ops::multiply(gradients[i], factor);
    }
  }

  Value* accumulator(const ParameterGradient& entry) {
    return context_.state(entry.variable.name + "/accumulated", entry.variable.shape, nn::zeros());
  }

  void accumulate() {
    for (ParameterGradient& entry : gradients_) {
      Value* sum = accumulator(entry);
      context_.update(sum, ops::add(sum, entry.gradient));
    }
  }

  void update() {
    if (options_.accumulate > 1) {
      for (ParameterGradient& entry : gradients_) {
        Value* sum = accumulator(entry);
        entry.gradient = ops::add(sum, entry.gradient);
        context_.update(sum, ops::zeros_like(sum));
        cleared_.insert(sum);
      }
    }
    if (options_.clip_norm > 0 || loss_scale_ != nullptr) measure_gradients();
    Value* rate = graph_->add_input(InputRole::input, "learning_rate", {DataType::fp32, {}});
    Value* step = nullptr;
    if (options_.optimizer.needs_step) {
      Value* previous = context_.state("optimizer_step", {}, nn::zeros());
      step = ops::add(previous, 1);
      context_.update(previous, step);
    }
    for (const ParameterGradient& entry : gradients_) {
      optim::UpdateContext update(context_, entry.variable, entry.parameter, entry.gradient, rate, step);
      Value* next = options_.optimizer.apply(update);
      context_.update(entry.parameter, next);
      if (options_.ema_decay > 0) average(entry, next);
    }
  }

  // The global gradient norm, for clipping and for the overflow test of the loss scale.
  void measure_gradients() {
    Value* sum = nullptr;
    for (const ParameterGradient& entry : gradients_) {
      Value* squares = ops::reduce_sum(ops::square(entry.gradient));
      sum = sum == nullptr ? squares : ops::add(sum, squares);
    }
    gradient_norm_ = ops::sqrt(sum);
    graph_->add_output("gradient_norm", gradient_norm_);
    if (options_.clip_norm > 0) {
      Value* limit = ops::constant_like(gradient_norm_, options_.clip_norm);
      Value* ratio = ops::divide(limit, ops::add(gradient_norm_, 1e-6));
      Value* factor = ops::minimum(ratio, ops::constant_like(ratio, 1));
      for (ParameterGradient& entry : gradients_) entry.gradient = ops::multiply(entry.gradient, factor);
    }
  }

  void average(const ParameterGradient& entry, Value* next) {
    nn::Variable average = entry.variable;  // starts from the same values, under the parameter's name
    average.name = "ema/" + entry.variable.name;
    average.role = InputRole::state;
    Value* old = context_.variable(average);
    context_.update(
        old, ops::add(ops::multiply(old, options_.ema_decay), ops::multiply(next, 1 - options_.ema_decay)));
  }

  // Every update happens only when the step is sound; the loss scale adapts to a finite loss either way, and
  // sums that overflowed start anew with it.
  void guard_updates() {
    Value* finite = ops::is_finite(loss_);
    if (options_.halting) {
      halted_ = context_.state(kHaltedState, {}, nn::zeros());
      finite = ops::logical_and(finite, ops::equal(halted_, ops::constant_like(halted_, 0)));
    }
    Value* sound =
        gradient_norm_ == nullptr ? finite : ops::logical_and(finite, ops::is_finite(gradient_norm_));
    for (size_t i = 0; i < graph_->updates().size(); ++i) {
      const auto& [state, next] = graph_->updates()[i];
      const bool restarts = loss_scale_ != nullptr && cleared_.contains(state);
      graph_->set_update(i, ops::select(restarts ? finite : sound, next, state));
    }
    if (halted_ != nullptr) halt(finite, sound);
    if (loss_scale_ == nullptr || gradient_norm_ == nullptr) return;
    Value* good = context_.state(kLossScaleStepsState, {}, nn::zeros());
    Value* counted = ops::add(good, 1);
    Value* grown = ops::greater_equal(counted, ops::constant_like(counted, kLossScaleGrowthSteps));
    Value* zero = ops::constant_like(good, 0);
    Value* raised = ops::select(grown, ops::multiply(loss_scale_, 2), loss_scale_);
    Value* lowered = ops::maximum(ops::multiply(loss_scale_, 0.5), ops::constant_like(loss_scale_, 1));
    const auto adapt = [&](Value* state, Value* when_sound, Value* when_overflown) {
      context_.update(state, ops::select(finite, ops::select(sound, when_sound, when_overflown), state));
    };
    adapt(loss_scale_, raised, lowered);
    adapt(good, ops::select(grown, zero, counted), zero);
  }

  // With a loss scale, gradients that overflow are no reason to stop.
  void halt(Value* finite, Value* sound) {
    Value* goes_on = loss_scale_ != nullptr ? finite : sound;
    context_.update(halted_, ops::select(goes_on, halted_, ops::constant_like(halted_, 1)));
  }

  const models::Model& model_;
  const StepOptions& options_;
  std::unique_ptr<Graph> graph_;
  nn::Context context_;
  Value* loss_ = nullptr;
  Value* loss_scale_ = nullptr;
  Value* halted_ = nullptr;
  Value* gradient_norm_ = nullptr;
  std::vector<ParameterGradient> gradients_;
  std::unordered_set<const Value*> cleared_;  // sums that the updating step takes
};

}  // namespace

StepGraph build_training_step(const models::Model& model, const StepOptions& options) {
  return StepBuilder(model, options).build(true);
}

StepGraph build_accumulating_step(const models::Model& model, const StepOptions& options) {
  return StepBuilder(model, options).build(false);
}

StepGraph build_evaluation(const models::Model& model, const nn::Loss& loss, int64_t batch, bool averaged) {
  auto graph = std::make_unique<Graph>(model.name + "_evaluation");
  nn::Context context(*graph, nn::Mode::inference);
  Value* images = graph->add_input(InputRole::input, "images", model.input_type(batch));
  Value* labels = graph->add_input(InputRole::input, "labels", {DataType::int32, {batch}});
  Value* logits = ops::cast(model.forward(context, images), DataType::fp32);
  // A filling row has no label: it takes that of class 0, and its loss is dropped.
  Value* classes = ops::maximum(labels, ops::constant_like(labels, 0));
  Value* losses = loss.examples(logits, classes);
  graph->add_output("loss", ops::select(ops::equal(labels, classes), losses, ops::zeros_like(losses)));
  graph->add_output("prediction", ops::argmax(logits));
  graph->add_output("confidence", ops::reduce_max(ops::softmax(logits), {.axes = {1}}));
  std::vector<nn::Variable> variables = context.variables();
  if (averaged) {
    for (nn::Variable& variable : variables) {
      if (variable.role != InputRole::parameter) continue;
      Value* input = graph->find_input(variable.name);
      variable.name = "ema/" + variable.name;
      graph->rename(input, variable.name);
    }
  }
  return {std::move(graph), std::move(variables)};
}

}  // namespace tessera::train
