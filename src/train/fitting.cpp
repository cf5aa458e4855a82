#include "train/fitting.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "tessera/base/error.h"
#include "tessera/base/progress.h"

namespace tessera::train {
namespace {

constexpr int64_t kSamples = 400;  // of a run's history
constexpr int64_t kSkipped = 40;   // steps in a row that may overflow in 16 bits while the loss scale falls

}  // namespace

Fitting::Fitting(Trainer& trainer, const data::Source& source, const FitOptions& options)
    : trainer_(trainer),
      source_(source),
      options_(options),
      writer_(options_, trainer.position_.step, trainer.communicator()),
      skipped_(trainer.phase_count(), 0) {
  plan_turns();
  plan_length();
  make_schedules();
  prepare();
}

// One step: each phase on as many batches as its updates accumulate, as often as it repeats.
void Fitting::plan_turns() {
  const int64_t accumulate = trainer_.options_.accumulate;
  size_t first = 0;  // batch of the last update of the phase before
  for (size_t index = 0; index < trainer_.phase_count(); ++index) {
    const Phase phase = trainer_.phase(index);
    const auto code = ErrorCode::invalid_argument;
    require(phase.repeat > 0, code, "the phase '{}' repeats {} times", phase.name, phase.repeat);
    require(!phase.same_batch || (index > 0 && (phase.repeat == 1 || accumulate == 1)), code,
            "the phase '{}' has no batch of a phase before it to take{}", phase.name,
            index > 0 ? " several times while batches accumulate" : "");
    for (int64_t repeat = 0; repeat < phase.repeat; ++repeat) {
      if (!phase.same_batch) {
        first = turns_.size();
        turns_.resize(first + static_cast<size_t>(accumulate));
      }
      for (int64_t part = 0; part < accumulate; ++part) {
        turns_[first + static_cast<size_t>(part)].push_back({.phase = index,
                                                             .updating = part + 1 == accumulate,
                                                             .repeat = repeat,
                                                             .last = repeat + 1 == phase.repeat});
      }
    }
  }
}

void Fitting::plan_length() {
  const auto code = ErrorCode::invalid_argument;
  const auto batches_of_step = static_cast<int64_t>(turns_.size());
  const std::optional<int64_t> batches = source_.batches(trainer_.position_.epoch, trainer_.ranks());
  if (!batches.has_value()) {
    require(options_.steps > 0, code, "the data does not end: FitOptions::steps says how long to train");
    total_steps_ = options_.steps;
    return;
  }
  require(*batches >= batches_of_step, code,
          "an epoch of {} batches is shorter than the {} that one update accumulates", *batches,
          batches_of_step);
  // A tail that would not fill a step is left out.
  batches_ = *batches / batches_of_step * batches_of_step;
  require(trainer_.position_.batch <= batches_, code,
          "the run stands after batch {} of an epoch, which has {} here: the data or the batch are not "
          "those it was begun with",
          trainer_.position_.batch, batches_);
  total_steps_ = options_.steps > 0 ? options_.steps : batches_ / batches_of_step * options_.epochs;
}

void Fitting::make_schedules() {
  const int64_t steps_per_epoch = batches_ / static_cast<int64_t>(turns_.size());
  for (size_t index = 0; index < trainer_.phase_count(); ++index) {
    const Phase phase = trainer_.phase(index);
    std::vector<optim::Schedule>& schedules = schedules_.emplace_back();
    for (const ParameterGroup& group : phase.groups) {
      const ScheduleMaker& make = group.schedule ? group.schedule : options_.schedule;
      schedules.push_back(make ? make(total_steps_ * phase.repeat, steps_per_epoch * phase.repeat)
                               : optim::constant());
    }
  }
}

// After a run that threw, what was under way is not wanted, and its steps may count again.
void Fitting::prepare() {
  const LongWork compiling;
  for (auto& [key, steps] : trainer_.steps_) steps.family.discard();
  const std::vector<SymbolBindings> sizes = source_.sizes();
  for (const SymbolBindings& size : sizes) trainer_.declare(size);
  for (size_t phase = 0; phase < trainer_.phase_count(); ++phase) {
    std::vector<StepKind> kinds{StepKind::updating};
    if (trainer_.options_.accumulate > 1) kinds.push_back(StepKind::accumulating);
    if (trainer_.is_local()) kinds.push_back(StepKind::averaging);
    for (const StepKind kind : kinds) trainer_.prepare_steps(phase, kind, sizes);
  }
}

// Of an update of the phase, counted from its first.
Tensor Fitting::rate_input(size_t phase, size_t group, int64_t update) const {
  const double base = trainer_.phase(phase).groups[group].optimizer.learning_rate;
  return Tensor::scalar(DataType::fp32, base * schedules_[phase][group].factor(update));
}

// Whether ranks that train each by itself have the same after the step that ends there: what evaluates, saves
// or stops is to find all of them there.
bool Fitting::averages(const Position& position) const {
  const int64_t step = position.step;
  const bool ends = position.batch == 0 || position.batch == batches_ ||
                    steps_made(position) == options_.steps || step == options_.max_steps;
  return step % trainer_.options_.local_steps == 0 || ends || evaluation_due(step);
}

// Between the batches of a step each of several ranks has sums of its own, which are not saved.
bool Fitting::may_save(const Position& position) const {
  if (trainer_.ranks() == 1) return true;
  return position.batch % std::ssize(turns_) == 0 && (!trainer_.is_local() || averages(position));
}

// What all ranks do at that position in place of going on at once.
Agreement Fitting::before_batch(const Position& position) const {
  if (!may_save(position)) return {};
  if (options_.max_steps > 0 && position.step >= options_.max_steps) return {.stop = true};
  return agreed(trainer_.communicator(), {.stop = told_to_stop(), .save = writer_.due(position.step)});
}

bool Fitting::complete(const Position& position) const {
  if (options_.steps > 0) return steps_made(position) >= options_.steps;
  return position.epoch - position.stage.epoch >= options_.epochs;
}

bool Fitting::batches_left(const Position& position) const {
  if (options_.steps > 0 && steps_made(position) >= options_.steps) return false;
  return batches_ == 0 || position.batch < batches_;
}

FitResult Fitting::run() {
  Position& position = trainer_.position_;
  trainer_.begun_ = true;
  result_.evaluations.resize(options_.evaluations.size());
  for (SettingChange change : options_.changes) {
    change.step = position.step;
    trainer_.history_.changes.push_back(std::move(change));
  }
  if (!options_.changes.empty()) save_state(true);  // what is written from now on is of the new settings
  if (options_.on_begin) options_.on_begin();
  const int64_t made = steps_made(position);
  learning_rate_ = made > 0 ? rate_input(0, 0, made * trainer_.phase(0).repeat - 1).at(0) : 0;
  while (!complete(position) && !before_batch(position).stop) {
    if (!run_epoch() || !end_epoch()) break;
  }
  result_.completed = complete(position);
  if (!result_.completed) save_state(true);
  if (trainer_.ranks() > 1) trainer_.communicator()->barrier();  // nobody leaves before all is saved
  result_.position = position;
  result_.history = trainer_.history_;
  return std::move(result_);
}

bool Fitting::run_epoch() {
  Position& position = trainer_.position_;
  epoch_sums_.clear();
  sample_sums_.clear();
  epoch_samples_ = 0;
  evaluation_seconds_ = 0;
  epoch_start_ = batch_start_ = Clock::now();
  const std::unique_ptr<data::Stream> stream = source_.open_into(
      trainer_.batch_memory_, {.epoch = position.epoch, .batch = position.batch, .state = position.source},
      {.rank = trainer_.rank(), .ranks = trainer_.ranks()});
  std::optional<Submitted> under_way;
  const auto finish = [&] {
    if (under_way.has_value()) receive(*std::exchange(under_way, std::nullopt));
  };
  Position next = position;  // after all that was submitted
  while (batches_left(next)) {
    const Agreement agreement = before_batch(next);
    if (agreement.stop) break;
    if (agreement.save) {
      finish();
      save_state(false);
    }
    const std::optional<data::Batch> batch = stream->next();
    note_progress();
    require(batch.has_value(), ErrorCode::internal, "the data ended after {} of {} batches", next.batch,
            batches_);
    Submitted submitted = submit(*batch, next);
    next = submitted.position;
    const bool evaluates = submitted.completes_step && evaluation_due(next.step);
    finish();
    // The last of many steps that were skipped ends the run: nothing may follow it unseen.
    const bool sound =
        std::all_of(skipped_.begin(), skipped_.end(), [](int64_t count) { return count == 0; });
    under_way = std::move(submitted);
    if (!trainer_.works_ahead() || !sound) finish();
    if (!evaluates) continue;
    finish();
    if (!evaluate_by_steps()) return false;
  }
  finish();
  return !batches_left(position);
}

// Gives the device the next batch from that position on.
Fitting::Submitted Fitting::submit(const data::Batch& batch, Position position) {
  const auto slot = static_cast<size_t>(position.batch) % turns_.size();
  Submitted submitted{.sizes = batch.sizes, .samples = batch.samples * trainer_.ranks()};
  const int64_t made = steps_made(position);
  submitted.learning_rate = rate_input(0, 0, made * trainer_.phase(0).repeat).at(0);
  const Position end_of_step{.batch = position.batch + std::ssize(turns_) - static_cast<int64_t>(slot),
                             .step = position.step + 1,
                             .stage = position.stage};
  const bool averages = trainer_.is_local() && this->averages(end_of_step);
  for (const Turn& turn : turns_[slot]) {
    StepKind kind = turn.updating ? StepKind::updating : StepKind::accumulating;
    if (turn.updating && turn.last && averages) kind = StepKind::averaging;
    Trainer::Steps& steps = trainer_.steps(turn.phase, kind);
    Submitted::Run run{turn, kind, steps.family.at(batch.sizes), steps.names, trainer_.inputs_of(batch)};
    const Phase phase = trainer_.phase(turn.phase);
    for (size_t group = 0; turn.updating && group < phase.groups.size(); ++group) {
      const Tensor rate = rate_input(turn.phase, group, made * phase.repeat + turn.repeat);
      run.inputs.host.emplace(learning_rate_input(phase.groups[group]), rate);
      if (turn.phase == 0 && group == 0) submitted.learning_rate = rate.at(0);
    }
    run.executable->submit(run.inputs.host, run.inputs.there);
    submitted.runs.push_back(std::move(run));
  }
  submitted.completes_step = slot + 1 == turns_.size();
  ++position.batch;
  position.source = batch.after.state;
  if (submitted.completes_step) ++position.step;
  submitted.position = std::move(position);
  return submitted;
}

void Fitting::receive(const Submitted& submitted) {
  Numbers measures;
  Numbers objectives;
  for (const Submitted::Run& run : submitted.runs) {
    const Feeds outputs = run.executable->receive();
    check_finite(submitted, run, outputs);
    for (const std::string& measure : run.names->measures) {
      const double sum = outputs.at(sum_output(measure)).at(0);
      const double weight = outputs.at(weight_output(measure)).at(0);
      epoch_sums_.add(measure, sum, weight);
      sample_sums_.add(measure, sum, weight);
      measures[measure] = sum / weight;
    }
    objectives[run.names->objective] = mean_of(outputs, run.names->objective);
  }
  trainer_.position_ = submitted.position;
  learning_rate_ = submitted.learning_rate;
  epoch_samples_ += submitted.samples;
  const double seconds = seconds_since(batch_start_);
  batch_start_ = Clock::now();
  const StepEvent event{.position = submitted.position,
                        .measures = std::move(measures),
                        .learning_rate = learning_rate_,
                        .samples_per_second = static_cast<double>(submitted.samples) / seconds};
  if (submitted.completes_step) sample(objectives, event);
  if (options_.on_step) options_.on_step(event);
}

// Now and then a step becomes part of the history.
void Fitting::sample(const Numbers& objectives, const StepEvent& event) {
  const int64_t every = std::max<int64_t>(1, total_steps_ / kSamples);
  if (event.position.step % every != 0 && steps_made(event.position) != 1) return;
  StepSample sample{.step = event.position.step,
                    .epoch = epochs_done(),
                    .measures = sample_sums_.means(),
                    .learning_rate = event.learning_rate,
                    .samples_per_second = event.samples_per_second};
  for (const auto& [objective, mean] : objectives) sample.measures[objective] = mean;
  trainer_.history_.samples.push_back(std::move(sample));
  sample_sums_.clear();
}

double Fitting::epochs_done() const {
  const Position& position = trainer_.position_;
  const double fraction =
      batches_ == 0 ? 0 : static_cast<double>(position.batch) / static_cast<double>(batches_);
  return static_cast<double>(position.epoch) + fraction;
}

// Returns when the run was sound, or when it was skipped because 16-bit gradients overflowed: the loss scale
// has been halved.
void Fitting::check_finite(const Submitted& submitted, const Submitted::Run& run, const Feeds& outputs) {
  const auto explain = [&](const std::string& what) {
    trainer_.explain_not_finite(run.turn.phase, run.kind, submitted.sizes, run.inputs.on_host(), what);
  };
  const std::string& objective = run.names->objective;
  const double sum = outputs.at(sum_output(objective)).at(0);
  const double norm = outputs.contains("gradient_norm") ? outputs.at("gradient_norm").at(0) : 0;
  if (!std::isfinite(sum)) explain(fmt::format("the {} is {}", objective, sum));
  int64_t& skipped = skipped_[run.turn.phase];
  if (run.turn.updating) skipped = std::isfinite(norm) ? 0 : skipped + 1;
  // The loss scale has long reached its least value, 1.
  const bool hopeless = trainer_.precision_ != Precision::fp16 || skipped > kSkipped;
  if (!std::isfinite(norm) && hopeless) explain(fmt::format("the norm of the gradients is {}", norm));
}

// False when the run was interrupted before it could be evaluated: the resumed run begins with its
// evaluation.
bool Fitting::end_epoch() {
  Position& position = trainer_.position_;
  trainer_.check_variables();
  EpochRow row{.stage = position.stage.index,
               .epoch = position.epoch + 1,
               .step = position.step,
               .measures = epoch_sums_.means(),
               .learning_rate = learning_rate_,
               .seconds = seconds_since(epoch_start_) - evaluation_seconds_};
  if (epoch_samples_ > 0) row.samples_per_second = static_cast<double>(epoch_samples_) / row.seconds;
  const bool ends = batches_ > 0 && position.batch >= batches_;
  Position after = position;
  if (ends) after = {.epoch = position.epoch + 1, .step = position.step, .stage = position.stage};
  const bool last = complete(after);
  std::vector<EvaluationRow> evaluations;
  for (size_t index = 0; index < options_.evaluations.size(); ++index) {
    const int64_t every = options_.evaluations[index].every_epochs;
    if (!last && (every == 0 || row.epoch % every != 0)) continue;
    if (hand_over(index, last)) continue;
    std::optional<EvaluationRow> done = evaluate(index);
    if (!done.has_value()) return false;
    evaluations.push_back(std::move(*done));
  }
  position = after;
  trainer_.history_.epochs.push_back(row);
  for (const EvaluationRow& evaluation : evaluations) note(evaluation);
  if (options_.on_epoch) options_.on_epoch(row, evaluations);
  if (last || writer_.due_after_epoch(position.epoch, position.step)) save_state(last);
  return true;
}

void Fitting::save_state(bool must) {
  if (!writer_.enabled()) return;
  const LongWork saving;
  trainer_.check_variables();
  CheckpointSource state = trainer_.training_state_source();
  state.metadata.insert(options_.metadata.begin(), options_.metadata.end());
  writer_.save(state, trainer_.position_.step, must);
}

}  // namespace tessera::train
