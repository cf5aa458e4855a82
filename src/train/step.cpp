#include "tessera/train/step.h"

#include <map>
#include <optional>
#include <set>
#include <utility>

#include "tessera/base/error.h"
#include "tessera/ops/functions.h"
#include "tessera/passes/differentiate.h"

#include "train/kept_sums.h"
#include "train/local_average.h"
#include "train/narrowing.h"
#include "train/objective.h"
#include "train/over_ranks.h"
#include "train/row_gradients.h"
#include "train/shards.h"
#include "train/step_guard.h"
#include "train/step_options.h"

namespace tessera::train {
namespace {

Value* one_if_zero(Value* weight) {
  Value* none = ops::equal(weight, ops::constant_like(weight, 0));
  return ops::select(none, ops::constant_like(weight, 1), weight);
}

class StepBuilder {
 public:
  StepBuilder(const nn::Task& task, const StepOptions& options, StepKind kind)
      : task_(task),
        options_(options),
        kind_(kind),
        prefix_(options.phase.name.empty() ? "" : options.phase.name + "/"),
        graph_(std::make_unique<Graph>(task.network + "_training")),
        context_(*graph_, nn::Mode::training, options.phase.objective, options.ranks),
        guard_(context_, prefix_, options.halting),
        sums_(context_, guard_, prefix_),
        ranks_(is_local(options) ? nn::Ranks{} : options.ranks),
        averaging_ranks_(options.ranks) {
    check_step_options(options);
    for (const std::string& prefix : options.freeze) context_.freeze(prefix);
  }

  StepGraph build() {
    forward();
    backward();
    if (updates()) {
      update();
    } else {
      guard_.set_objective(objective_.sum);
      sums_.accumulate(gradients_, weight_);
    }
    if (delays() && updates()) {  // last, since the update needs none of it
      Exchange of_batch(ranks_);
      add_batch(of_batch);
      of_batch.make();
    }
    guard_.apply();
    if (kind_ == StepKind::averaging) {
      Exchange measures(averaging_ranks_);
      measures.add_measures(measures_);
      measures.make();
      average_updates(*graph_, averaging_ranks_, guard_, of_rows_);
    }
    std::vector<std::string> names = show_measures();
    return {std::move(graph_), context_.variables(), objective_.name, std::move(names)};
  }

 private:
  bool updates() const { return kind_ != StepKind::accumulating; }
  bool delays() const { return options_.gradient_delay > 0; }
  // Whether gradients meet those of other ranks, batches or steps: as sums, which add up.
  bool sums_gradients() const { return ranks_.count() > 1 || options_.accumulate > 1 || delays(); }

  void forward() {
    const nn::Values inputs = nn::add_inputs(*graph_, task_, options_.sizes);
    const nn::Training training = task_.training(context_, inputs);
    objective_ = objective_of(task_, training, options_.phase.objective, options_.sizes);
    measures_ = {objective_};
    measures_.insert(measures_.end(), training.metrics.begin(), training.metrics.end());
    weight_ = divisor_ = objective_.weight;
    // Gradients that go through other ranks must be of one size on all of them.
    if (communicates(*graph_)) divisor_ = ranks_.sum(objective_.weight);
    if (Value* counter = graph_->find_input("random_counter")) {
      context_.update(counter, ops::add(counter, ops::constant(*graph_, Tensor::from<int64_t>({2}, {0, 1}))));
    }
    updates_of_batch_ = graph_->updates().size();
    for (const nn::Variable& variable : context_.variables()) {
      if (variable.of_rows) of_rows_.insert(graph_->find_input(variable.name));
    }
    // Whether other gradients than this batch's are sound, or this rank's alone, is nothing to these states.
    // Of rows, the next batch goes on after this one even where gradients overflow.
    for (const Graph::Update& update : graph_->updates()) {
      if (delays() || is_local(options_) || of_rows_.contains(update.state)) guard_.carry(update.state);
    }
  }

  // What ranks know of all batches beside the gradients.
  void add_batch(Exchange& exchange) {
    exchange.add_measures(measures_);
    exchange.add_states(*graph_, updates_of_batch_, of_rows_);
  }

  // Rows are of all ranks already. Others are whole on all of them, or shared out among them.
  void add_gradients(Exchange& exchange) {
    std::vector<ParameterGradient*> entries;
    std::vector<Value*> shared;
    for (ParameterGradient& entry : gradients_) {
      if (entry.rows != nullptr) continue;
      const std::optional<nn::Shard>& shard = entry.variable.shard;
      if (!shard.has_value()) {
        exchange.add(entry.gradient);
        continue;
      }
      entries.push_back(&entry);
      shared.push_back(all_parts(entry.gradient, *shard));
    }
    const std::vector<Value*> sums = ranks_.scattered(std::move(shared));
    for (size_t i = 0; i < entries.size(); ++i) entries[i]->gradient = sums[i];
  }

  // Their names.
  std::vector<std::string> show_measures() {
    std::vector<std::string> names;
    for (const nn::Measure& measure : measures_) {
      names.push_back(measure.name);
      graph_->add_output(sum_output(measure.name), measure.sum);
      graph_->add_output(weight_output(measure.name), measure.weight);
    }
    return names;
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
    Value* const loss_scale = options_.precision == Precision::fp16 ? guard_.scale_loss() : nullptr;
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
    Value* one = loss_scale != nullptr ? loss_scale : ops::constant_like(objective_.sum, 1);
    Value* divisor = one_if_zero(divisor_);
    std::vector<Value*> gradients =
        differentiate(*graph_, objective_.sum, sources, ops::divide(one, divisor));
    Value* factor = nullptr;
    if (sums_gradients()) {
      factor = loss_scale != nullptr ? ops::divide(divisor, loss_scale) : divisor;
    } else if (loss_scale != nullptr) {
      factor = ops::reciprocal(loss_scale);
    }
    for (Value*& gradient : gradients) {
      if (factor != nullptr) gradient = ops::multiply(gradient, factor);
    }
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
  }

  void check_rows(const nn::Variable& variable, const ParameterGroup& group) const {
    require(group.optimizer.elementwise, ErrorCode::invalid_argument,
            "'{}' is updated by rows, which {} cannot: it needs whole parameters", variable.name,
            group.optimizer.name);
    require(options_.accumulate == 1, ErrorCode::invalid_argument,
            "'{}' is updated by rows, which gradients accumulated over batches do not have", variable.name);
    require(!delays(), ErrorCode::invalid_argument,
            "'{}' is updated by rows, which gradients delayed to the next step do not have", variable.name);
  }

  void scale_gradients(Value* factor) {
    for (ParameterGradient& entry : gradients_) entry.gradient = ops::multiply(entry.gradient, factor);
  }

  // The means of all gradients, and what else ranks know together. It is made long before the last gradient,
  // and both can go on beside the backward pass.
  void exchange() {
    Exchange of_batch(ranks_), of_gradients(ranks_);
    Value* steps = nullptr;
    if (options_.accumulate > 1) sums_.take_accumulated(gradients_, weight_);
    if (delays()) {
      steps = sums_.delay(gradients_, weight_);
      of_gradients.add(steps);
    } else {
      add_batch(of_batch);
    }
    (delays() ? of_gradients : of_batch).add(weight_);
    const Narrowing narrowing(options_, guard_.loss_scale());
    for (ParameterGradient& entry : gradients_) {
      if (entry.rows == nullptr) entry.gradient = narrowing.narrowed(entry.variable, entry.gradient);
    }
    add_gradients(of_gradients);
    of_batch.make();
    of_gradients.make();
    for (ParameterGradient& entry : gradients_) {
      if (entry.rows == nullptr) entry.gradient = narrowing.widened(entry.variable, entry.gradient);
    }
    guard_.set_objective(measures_.front().sum);
    if (steps != nullptr) {
      const auto all = static_cast<double>(options_.ranks.count);
      guard_.set_ready(ops::equal(steps, ops::constant_like(steps, all)));
    }
    if (sums_gradients()) scale_gradients(ops::reciprocal(one_if_zero(weight_)));
  }

  void update() {
    exchange();
    if (options_.clip_norm > 0 || guard_.loss_scale() != nullptr) measure_gradients();
    std::map<const ParameterGroup*, Value*> rates;
    bool counts_steps = false;
    for (const ParameterGroup& group : options_.phase.groups) {
      rates[&group] = graph_->add_input(InputRole::input, learning_rate_input(group), {DataType::fp32, {}});
      counts_steps |= group.optimizer.needs_step;
    }
    Value* step = nullptr;
    if (counts_steps) {
      Value* previous = state(kOptimizerStepState);
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
        parts_.push_back(ops::select(guard_.sound(), next, parameter));
        sums_of_parts_.add(update.sums_over_ranks());
        continue;
      }
      for (size_t i = first; i < graph_->updates().size() && entry.rows != nullptr; ++i)
        guard_.leave(graph_->updates()[i].state);
      take(entry, next);
    }
    take_parts();
  }

  void take(const ParameterGradient& entry, Value* next) {
    context_.update(entry.parameter, next);
    if (entry.rows != nullptr || entry.variable.shard.has_value()) guard_.leave(entry.parameter);
    if (options_.ema_decay > 0) average(entry, next);
  }

  // What is gathered is sound already: it can lie where the parameter does.
  void take_parts() {
    sums_of_parts_.join(*graph_);
    const std::vector<Value*> gathered = ranks_.gathered(parts_);
    auto next = gathered.begin();
    for (const ParameterGradient& entry : gradients_) {
      if (entry.variable.shard.has_value()) take(entry, joined_parts(*next++, *entry.variable.shard));
    }
  }

  // No row in a step that is not sound: a guard around the update would read and write the whole table.
  Value* rows_if_sound(Value* rows) {
    return ops::select(guard_.sound(), rows, ops::broadcast_to(ops::constant_like(rows, -1), rows->shape()));
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
    Value* norm = ops::sqrt(whole);
    guard_.set_gradient_norm(norm);
    graph_->add_output("gradient_norm", norm);
    if (options_.clip_norm > 0) {
      Value* limit = ops::constant_like(norm, options_.clip_norm);
      Value* ratio = ops::divide(limit, ops::add(norm, 1e-6));
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

  const nn::Task& task_;
  const StepOptions& options_;
  const StepKind kind_;
  const std::string prefix_;
  std::unique_ptr<Graph> graph_;
  nn::Context context_;
  StepGuard guard_;
  KeptSums sums_;
  const OverRanks ranks_;            // with which every step is made: in local SGD none
  const OverRanks averaging_ranks_;  // of an averaging step
  nn::Measure objective_;
  std::vector<nn::Measure> measures_;  // the objective first
  size_t updates_of_batch_ = 0;        // how many updates are of the network, not of its parameters
  std::set<const Value*> of_rows_;     // states of the batch's rows
  Value* divisor_ = nullptr;           // of the objective's sum, while gradients are made
  Value* weight_ = nullptr;            // of the objective in what the gradients are of
  std::vector<ParameterGradient> gradients_;
  std::vector<Value*> parts_;  // of the parameters that are shards, updated
  SumsOfParts sums_of_parts_;  // for their updates
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

bool is_accumulated(const std::string& name) {
  return name.ends_with(kAccumulatedState) || name.ends_with(kAccumulatedWeightState);
}

bool is_delayed(const std::string& name) {
  return name.ends_with(kDelayedState) || name.ends_with(kDelayedWeightState);
}

StepGraph build_training_step(const nn::Task& task, const StepOptions& options, StepKind kind) {
  return StepBuilder(task, options, kind).build();
}

}  // namespace tessera::train
