#include "tessera/train/step.h"

#include <map>
#include <optional>
#include <unordered_set>
#include <utility>

#include "tessera/base/error.h"
#include "tessera/ops/functions.h"
#include "tessera/passes/differentiate.h"

#include "train/objective.h"
#include "train/over_ranks.h"
#include "train/row_gradients.h"
#include "train/shards.h"

namespace tessera::train {
namespace {

constexpr double kInitialLossScale = 65536;
constexpr double kLossScaleGrowthSteps = 2000;

struct ParameterGradient {
  nn::Variable variable;
  const ParameterGroup* group;
  Value* parameter;
  Value* gradient = nullptr;  // summed over the ranks, where the variable is a shard its part
  Value* rows = nullptr;      // of the parameter, that the gradient is of; null: all
};

Value* one_if_zero(Value* weight) {
  Value* none = ops::equal(weight, ops::constant_like(weight, 0));
  return ops::select(none, ops::constant_like(weight, 1), weight);
}

class StepBuilder {
 public:
  StepBuilder(const nn::Task& task, const StepOptions& options)
      : task_(task),
        options_(options),
        prefix_(options.phase.name.empty() ? "" : options.phase.name + "/"),
        graph_(std::make_unique<Graph>(task.network + "_training")),
        context_(*graph_, nn::Mode::training, options.phase.objective, options.ranks),
        ranks_(options.ranks) {}

  StepGraph build(bool updating) {
    updating_ = updating;
    forward();
    backward();
    if (updating) {
      update();
    } else {
      accumulate();
    }
    guard_updates();
    return {std::move(graph_), context_.variables(), objective_.name, std::move(measures_)};
  }

 private:
  void forward() {
    const nn::Values inputs = nn::add_inputs(*graph_, task_, options_.sizes);
    const nn::Training training = task_.training(context_, inputs);
    objective_ = objective_of(task_, training, options_.phase.objective, options_.sizes);
    const bool through_ranks = communicates(*graph_);
    std::vector<nn::Measure> measures{objective_};
    measures.insert(measures.end(), training.metrics.begin(), training.metrics.end());
    if (updating_) ranks_.add_up(measures);
    total_ = measures.front();
    for (const nn::Measure& measure : measures) show(measure);
    // Gradients that go through other ranks must be of one size on all of them.
    if (!updating_ && through_ranks) total_.weight = ranks_.sum(objective_.weight);
    if (updating_) ranks_.average_states(*graph_);
    if (Value* counter = graph_->find_input("random_counter")) {
      context_.update(counter, ops::add(counter, ops::constant(*graph_, Tensor::from<int64_t>({2}, {0, 1}))));
    }
  }

  // Rows are of all ranks already. Others are whole on all of them, or shared out among them.
  void add_gradients_over_ranks() {
    std::vector<ParameterGradient*> entries;
    std::vector<Value*> own;
    for (ParameterGradient& entry : gradients_) {
      if (entry.rows != nullptr) continue;
      const std::optional<nn::Shard>& shard = entry.variable.shard;
      entries.push_back(&entry);
      own.push_back(shard.has_value() ? all_parts(entry.gradient, *shard) : entry.gradient);
    }
    const std::vector<Value*> sums =
        shards_parameters() ? ranks_.scattered(std::move(own)) : ranks_.reduced(std::move(own));
    for (size_t i = 0; i < entries.size(); ++i) entries[i]->gradient = sums[i];
  }

  void show(const nn::Measure& measure) {
    measures_.push_back(measure.name);
    graph_->add_output(sum_output(measure.name), measure.sum);
    graph_->add_output(weight_output(measure.name), measure.weight);
  }

  Value* state(const char* name, const nn::Initializer& initializer = nn::zeros()) {
    return context_.state(prefix_ + name, {}, initializer);
  }

  bool shards_parameters() const { return options_.shard_optimizer && options_.ranks.count > 1; }

  // Tables that are updated by rows stay whole: their states change where a batch reads.
  std::optional<nn::Shard> shard_of(const nn::Variable& variable, const ParameterGroup& group) const {
    if (!shards_parameters() || variable.updates_rows) return std::nullopt;
    require(group.optimizer.elementwise || group.optimizer.by_norms, ErrorCode::invalid_argument,
            "ranks cannot share out the state of '{}': {} needs whole parameters", variable.name,
            group.optimizer.name);
    return nn::Shard{variable.shape, options_.ranks.rank, options_.ranks.count};
  }

  const ParameterGroup* group_of(const nn::Variable& variable) const {
    if (variable.role != InputRole::parameter) return nullptr;
    for (const ParameterGroup& group : options_.phase.groups) {
      if (!group.takes || group.takes(variable)) return &group;
    }
    return nullptr;
  }

  // Of the mean of this batch, times the loss scale.
  void backward() {
    if (options_.precision == Precision::fp16)
      loss_scale_ = state(kLossScaleState, nn::constant(kInitialLossScale));
    std::vector<Value*> sources;
    std::vector<RowReads> reads;
    for (const nn::Variable& variable : context_.variables()) {
      const ParameterGroup* group = group_of(variable);
      if (group == nullptr) continue;
      Value* parameter = graph_->find_input(variable.name);
      if (variable.updates_rows) check_rows(variable, *group);
      RowReads own = variable.updates_rows ? row_reads(variable, parameter) : RowReads{{parameter}, {}};
      if (own.parts.empty()) continue;  // nothing reads the table: no row changes
      gradients_.push_back({variable, group, parameter});
      gradients_.back().variable.decays |= options_.decay_all;
      gradients_.back().variable.shard = shard_of(variable, *group);
      sources.insert(sources.end(), own.parts.begin(), own.parts.end());
      reads.push_back(std::move(own));
    }
    require(!gradients_.empty(), ErrorCode::invalid_argument, "{}: no parameter is trained for '{}'",
            task_.name, objective_.name);
    weight_ = one_if_zero(total_.weight);
    Value* one = loss_scale_ != nullptr ? loss_scale_ : ops::constant_like(objective_.sum, 1);
    const std::vector<Value*> gradients =
        differentiate(*graph_, objective_.sum, sources, ops::divide(one, weight_));
    auto next = gradients.begin();
    for (size_t i = 0; i < gradients_.size(); ++i) {
      const auto end = next + std::ssize(reads[i].parts);
      gradients_[i].gradient = *next;
      if (gradients_[i].variable.updates_rows) {
        const ops::CombinedRows rows = combined_rows(
            gradients_[i].parameter, ranks_.gathered(reads[i].indices), ranks_.gathered({next, end}));
        gradients_[i].rows = rows.first;
        gradients_[i].gradient = rows.sums;
      }
      next = end;
    }
    if (options_.accumulate > 1) {  // sums add up, means do not
      scale_gradients(loss_scale_ != nullptr ? ops::divide(weight_, loss_scale_) : weight_);
    } else if (loss_scale_ != nullptr) {
      scale_gradients(ops::reciprocal(loss_scale_));
    }
    if (options_.accumulate == 1) add_gradients_over_ranks();
  }

  void check_rows(const nn::Variable& variable, const ParameterGroup& group) const {
    require(group.optimizer.elementwise, ErrorCode::invalid_argument,
            "'{}' is updated by rows, which {} cannot: it needs whole parameters", variable.name,
            group.optimizer.name);
    require(options_.accumulate == 1, ErrorCode::invalid_argument,
            "'{}' is updated by rows, which gradients accumulated over batches do not have", variable.name);
  }

  void scale_gradients(Value* factor) {
    for (ParameterGradient& entry : gradients_) entry.gradient = ops::multiply(entry.gradient, factor);
  }

  // Each sum that is accumulated over batches, and what this batch adds to it.
  template <typename Function>
  void for_each_sum(const Function& function) {
    for (ParameterGradient& entry : gradients_) {
      const std::string name = prefix_ + entry.variable.name + kAccumulatedState;
      entry.gradient = function(context_.state(name, entry.variable.shape, nn::zeros()), entry.gradient);
    }
    weight_ = function(state(kAccumulatedWeightState), objective_.weight);
  }

  void accumulate() {
    for_each_sum([&](Value* sum, Value* addend) {
      context_.update(sum, ops::add(sum, addend));
      return addend;
    });
  }

  void take_accumulated() {
    for_each_sum([&](Value* sum, Value* addend) {
      context_.update(sum, ops::zeros_like(sum));
      cleared_.insert(sum);
      return ops::add(sum, addend);
    });
    add_gradients_over_ranks();
    weight_ = ranks_.sum(weight_);
    scale_gradients(ops::reciprocal(one_if_zero(weight_)));
  }

  void update() {
    if (options_.accumulate > 1) take_accumulated();
    if (options_.clip_norm > 0 || loss_scale_ != nullptr) measure_gradients();
    std::map<const ParameterGroup*, Value*> rates;
    bool counts_steps = false;
    for (const ParameterGroup& group : options_.phase.groups) {
      rates[&group] = graph_->add_input(InputRole::input, learning_rate_input(group), {DataType::fp32, {}});
      counts_steps |= group.optimizer.needs_step;
    }
    Value* step = nullptr;
    if (counts_steps) {
      Value* previous = state("optimizer_step");
      step = ops::add(previous, 1);
      context_.update(previous, step);
    }
    for (const ParameterGradient& entry : gradients_) {
      const size_t first = graph_->updates().size();
      const std::optional<nn::Shard>& shard = entry.variable.shard;
      Value* parameter = shard.has_value() ? own_part(entry.parameter, *shard) : entry.parameter;
      optim::UpdateContext update(context_, entry.variable, parameter,
                                  ops::cast(entry.gradient, DataType::fp32), rates.at(entry.group), step,
                                  entry.rows == nullptr ? nullptr : rows_if_sound(entry.rows));
      Value* next = update.whole(entry.group->optimizer.apply(update));
      if (shard.has_value()) {
        parts_.push_back(ops::select(sound(), next, parameter));
        sums_.add(update.sums_over_ranks());
        continue;
      }
      for (size_t i = first; i < graph_->updates().size() && entry.rows != nullptr; ++i)
        guarded_.insert(graph_->updates()[i].state);
      take(entry, next);
    }
    take_parts();
  }

  void take(const ParameterGradient& entry, Value* next) {
    context_.update(entry.parameter, next);
    if (entry.rows != nullptr || entry.variable.shard.has_value()) guarded_.insert(entry.parameter);
    if (options_.ema_decay > 0) average(entry, next);
  }

  // What is gathered is sound already: it can lie where the parameter does.
  void take_parts() {
    sums_.join(*graph_);
    const std::vector<Value*> gathered = ranks_.gathered(parts_);
    auto next = gathered.begin();
    for (const ParameterGradient& entry : gradients_) {
      if (entry.variable.shard.has_value()) take(entry, joined_parts(*next++, *entry.variable.shard));
    }
  }

  // No row in a step that is not sound: a guard around the update would read and write the whole table.
  Value* rows_if_sound(Value* rows) {
    return ops::select(sound(), rows, ops::broadcast_to(ops::constant_like(rows, -1), rows->shape()));
  }

  // The global gradient norm, for clipping and for the overflow test of the loss scale.
  void measure_gradients() {
    Value* whole = nullptr;
    Value* shared = nullptr;  // of the gradients of which each rank has a part
    for (const ParameterGradient& entry : gradients_) {
      Value* squares = ops::reduce_sum(ops::square(entry.gradient));
      Value*& sum = entry.variable.shard.has_value() ? shared : whole;
      sum = sum == nullptr ? squares : ops::add(sum, squares);
    }
    if (shared != nullptr) {
      shared = ranks_.sum(shared);
      whole = whole == nullptr ? shared : ops::add(whole, shared);
    }
    gradient_norm_ = ops::sqrt(whole);
    graph_->add_output("gradient_norm", gradient_norm_);
    if (options_.clip_norm > 0) {
      Value* limit = ops::constant_like(gradient_norm_, options_.clip_norm);
      Value* ratio = ops::divide(limit, ops::add(gradient_norm_, 1e-6));
      scale_gradients(ops::minimum(ratio, ops::constant_like(ratio, 1)));
    }
  }

  void average(const ParameterGradient& entry, Value* next) {
    nn::Variable average = entry.variable;  // starts from the same values, under the parameter's name
    average.name = "ema/" + entry.variable.name;
    average.shard.reset();  // what is evaluated is whole on all ranks
    average.data_type = DataType::fp32;
    Value* old = context_.state(average);
    context_.update(old, ops::add(ops::multiply(old, options_.ema_decay),
                                  ops::multiply(ops::cast(next, DataType::fp32), 1 - options_.ema_decay)));
  }

  // Whether the loss is a number, and nothing halted the training.
  Value* finite() {
    if (finite_ != nullptr) return finite_;
    finite_ = ops::is_finite(total_.sum);
    if (options_.halting) {
      halted_ = context_.state(kHaltedState, {}, nn::zeros());
      finite_ = ops::logical_and(finite_, ops::equal(halted_, ops::constant_like(halted_, 0)));
    }
    return finite_;
  }

  // And whether the gradients are numbers too.
  Value* sound() {
    if (sound_ == nullptr)
      sound_ =
          gradient_norm_ == nullptr ? finite() : ops::logical_and(finite(), ops::is_finite(gradient_norm_));
    return sound_;
  }

  // Every update happens only when the step is sound; the loss scale adapts to a finite loss either way, and
  // sums that overflowed start anew with it.
  void guard_updates() {
    Value* finite = this->finite();
    Value* sound = this->sound();
    for (size_t i = 0; i < graph_->updates().size(); ++i) {
      const auto& [state, next] = graph_->updates()[i];
      if (guarded_.contains(state)) continue;
      const bool restarts = loss_scale_ != nullptr && cleared_.contains(state);
      graph_->set_update(i, ops::select(restarts ? finite : sound, next, state));
    }
    if (halted_ != nullptr) halt(finite, sound);
    if (loss_scale_ == nullptr || gradient_norm_ == nullptr) return;
    Value* good = state(kLossScaleStepsState);
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

  const nn::Task& task_;
  const StepOptions& options_;
  const std::string prefix_;
  std::unique_ptr<Graph> graph_;
  nn::Context context_;
  const OverRanks ranks_;
  bool updating_ = false;
  nn::Measure objective_;
  nn::Measure total_;  // the objective's sum and weight as the ranks agree on them
  std::vector<std::string> measures_;
  Value* weight_ = nullptr;  // of the objective in what the gradients are of, never 0
  Value* loss_scale_ = nullptr;
  Value* halted_ = nullptr;
  Value* gradient_norm_ = nullptr;
  Value* finite_ = nullptr;
  Value* sound_ = nullptr;
  std::vector<ParameterGradient> gradients_;
  std::vector<Value*> parts_;                 // of the parameters that are shards, updated
  SumsOfParts sums_;                          // for their updates
  std::unordered_set<const Value*> cleared_;  // sums that the updating step takes
  std::unordered_set<const Value*> guarded_;  // states whose updates change nothing in an unsound step
};

}  // namespace

std::string learning_rate_input(const ParameterGroup& group) {
  return group.name.empty() ? "learning_rate" : "learning_rate/" + group.name;
}

std::string sum_output(const std::string& measure) {
  return measure + "/sum";
}

std::string weight_output(const std::string& measure) {
  return measure + "/weight";
}

double mean_of(const Feeds& outputs, const std::string& measure) {
  return outputs.at(sum_output(measure)).at(0) / outputs.at(weight_output(measure)).at(0);
}

StepGraph build_training_step(const nn::Task& task, const StepOptions& options) {
  return StepBuilder(task, options).build(true);
}

StepGraph build_accumulating_step(const nn::Task& task, const StepOptions& options) {
  return StepBuilder(task, options).build(false);
}

}  // namespace tessera::train
