#include "tessera/train/trainer.h"

#include <cmath>
#include <utility>

#include "tessera/base/clock.h"
#include "tessera/base/error.h"

#include "checkpoint_writer.h"

namespace tessera::train {
namespace {

constexpr int64_t kSamples = 400;  // of a run's history
constexpr int64_t kSkipped = 40;   // steps in a row that may overflow in 16 bits while the loss scale falls

}  // namespace

Trainer::Trainer(models::Model model, TrainerOptions options)
    : model_(std::move(model)),
      options_(std::move(options)),
      device_(options_.device != nullptr ? options_.device : Device::open("auto")),
      precision_(options_.precision.value_or(device_->training_precision())),
      variables_(std::make_shared<Variables>(device_)) {
  network_list_ = models::build(model_, 1).variables;
  const StepOptions steps = step_options(1);
  variables_list_ = build_training_step(model_, steps).variables;
  initialize_variables(*variables_, variables_list_, options_.seed);
  // Of a run under way, and nothing that the next one depends on.
  std::erase_if(variables_list_, [](const nn::Variable& variable) { return variable.name == kHaltedState; });
}

StepOptions Trainer::step_options(int64_t batch) const {
  return {.batch = batch,
          .loss = options_.loss,
          .optimizer = options_.optimizer,
          .precision = precision_,
          .accumulate = options_.accumulate,
          .clip_norm = options_.clip_norm,
          .ema_decay = options_.ema_decay,
          .decay_all = options_.decay_all,
          .halting = works_ahead()};
}

// Steps are submitted before the one ahead of them was looked at.
bool Trainer::works_ahead() const {
  return !device_->host_accessible();
}

CompileOptions Trainer::compile_options() const {
  CompileOptions options;
  options.passes.precision = precision_;
  options.passes.deterministic = options_.deterministic;
  options.passes.recompute = options_.recompute;
  options.tune = options_.tune;
  options.tuning_file = options_.tuning_file;
  return options;
}

void Trainer::prepare(int64_t batch) {
  if (batch == batch_) return;
  const StepOptions steps = step_options(batch);
  update_step_ = compile(*build_training_step(model_, steps).graph, device_, compile_options());
  update_step_->bind(variables_);
  if (options_.accumulate > 1) {
    accumulate_step_ = compile(*build_accumulating_step(model_, steps).graph, device_, compile_options());
    accumulate_step_->bind(variables_);
  }
  batch_ = batch;
}

const Executable& Trainer::step(int64_t batch) {
  prepare(batch);
  return *update_step_;
}

int64_t Trainer::parameter_count() const {
  return models::parameter_count(network_list_);
}

FitResult Trainer::fit(const data::Loader& loader, const FitOptions& options) {
  const int64_t batches = loader.batches_per_epoch();
  const int64_t batch_size = loader.options().batch_size;
  require(batches >= options_.accumulate, ErrorCode::invalid_argument,
          "an epoch of {} batches is shorter than the {} that one update accumulates", batches,
          options_.accumulate);
  const int64_t steps_per_epoch = batches / options_.accumulate;
  // A tail that would not fill an update is left out.
  const int64_t batches_used = steps_per_epoch * options_.accumulate;
  require(position_.batch <= batches_used, ErrorCode::invalid_argument,
          "the run stands behind batch {} of an epoch, which has {} here: the data or the batch are not "
          "those it was "
          "begun with",
          position_.batch, batches_used);
  const int64_t total_steps = steps_per_epoch * options.epochs;
  const optim::Schedule schedule =
      options.schedule ? options.schedule(total_steps, steps_per_epoch) : optim::constant();
  const int64_t sample_every = std::max<int64_t>(1, total_steps / kSamples);
  prepare(batch_size);
  forget_failure();

  FitResult result;
  const auto stopped = [&] { return options.stop != nullptr && options.stop->load(); };
  const auto interrupted = [&](const Position& position) {
    return stopped() || (options.max_steps > 0 && position.step >= options.max_steps);
  };
  CheckpointWriter writer(options, position_.step);
  const auto save_state = [&](bool must) {
    if (!writer.enabled()) return;
    check_variables();
    Checkpoint state = training_state();
    state.metadata.insert(options.metadata.begin(), options.metadata.end());
    writer.save(state, position_.step, must);
  };
  for (SettingChange change : options.changes) {
    change.step = position_.step;
    history_.changes.push_back(std::move(change));
  }
  if (!options.changes.empty()) save_state(true);  // what is written from now on is of the new settings
  if (options.on_begin) options.on_begin();
  const auto rate_of = [&](int64_t step) { return options_.optimizer.learning_rate * schedule.factor(step); };

  double learning_rate = position_.step > 0 ? rate_of(position_.step - 1) : 0;
  while (position_.epoch < options.epochs && !interrupted(position_)) {
    double loss_sum = 0;
    double correct_sum = 0;
    int64_t seen = 0;
    double sample_correct = 0;
    int64_t sample_seen = 0;
    const auto epoch_start = Clock::now();
    auto step_start = epoch_start;
    const auto receive = [&](const SubmittedStep& step) {
      const auto outputs = step.executable->receive();
      const double loss = outputs.at("loss").at(0);
      check_finite(step.inputs, outputs, step.updating);
      position_ = step.position;
      learning_rate = step.learning_rate;
      const double correct = outputs.at("correct").at(0);
      loss_sum += loss;
      correct_sum += correct;
      seen += batch_size;
      sample_correct += correct;
      sample_seen += batch_size;
      const double seconds = seconds_since(step_start);
      step_start = Clock::now();
      const StepEvent event{.position = position_,
                            .loss = loss,
                            .accuracy = correct / static_cast<double>(batch_size),
                            .learning_rate = learning_rate,
                            .images_per_second = static_cast<double>(batch_size) / seconds};
      if (step.updating && (position_.step % sample_every == 0 || position_.step == 1)) {
        const double done = static_cast<double>(position_.epoch) +
                            static_cast<double>(position_.batch) / static_cast<double>(batches);
        history_.samples.push_back({.step = position_.step,
                                    .epoch = done,
                                    .loss = loss,
                                    .accuracy = sample_correct / static_cast<double>(sample_seen),
                                    .learning_rate = learning_rate,
                                    .images_per_second = event.images_per_second});
        sample_correct = 0;
        sample_seen = 0;
      }
      if (options.on_step) options.on_step(event);
    };
    data::Epoch epoch = loader.epoch(static_cast<uint64_t>(position_.epoch), position_.batch);
    std::optional<SubmittedStep> under_way;
    Position next = position_;  // behind all that was submitted
    while (next.batch < batches_used && !interrupted(next)) {
      if (writer.due(next.step)) {
        if (under_way.has_value()) receive(*std::exchange(under_way, std::nullopt));
        save_state(false);
      }
      const std::optional<data::Batch> batch = epoch.next();
      require(batch.has_value(), ErrorCode::internal, "the loader ended early");
      SubmittedStep step = submit(*batch, next, rate_of(next.step));
      next = step.position;
      if (under_way.has_value()) receive(*std::exchange(under_way, std::nullopt));
      // The last of many steps that were skipped ends the run: nothing may follow it unseen.
      if (works_ahead() && skipped_ == 0) {
        under_way = std::move(step);
      } else {
        receive(step);
      }
    }
    if (under_way.has_value()) receive(*under_way);
    if (position_.batch < batches_used) break;  // interrupted inside the epoch
    check_variables();
    EpochRow row{.epoch = position_.epoch + 1,
                 .step = position_.step,
                 .learning_rate = learning_rate,
                 .seconds = seconds_since(epoch_start)};
    if (seen > 0) {
      row.train_loss = loss_sum * static_cast<double>(batch_size) / static_cast<double>(seen);
      row.train_accuracy = correct_sum / static_cast<double>(seen);
      row.images_per_second = static_cast<double>(seen) / row.seconds;
    }
    const bool last = row.epoch == options.epochs;
    const bool due = options.evaluate_every > 0 && row.epoch % options.evaluate_every == 0;
    if (options.evaluation != nullptr && (last || due)) {
      Evaluation evaluation;
      if (!stopped()) evaluation = evaluate(*options.evaluation, options.stop);
      if (stopped()) break;  // at the end of the epoch: the resumed run begins with its evaluation
      result.evaluation = std::move(evaluation);
      row.test_loss = result.evaluation.loss;
      row.test_accuracy = result.evaluation.accuracy;
    }
    position_.batch = 0;
    ++position_.epoch;
    history_.epochs.push_back(row);
    if (options.on_epoch) options.on_epoch(row);
    if (writer.enabled() && row.test_accuracy > best_accuracy_ && writer.save_best(checkpoint()))
      best_accuracy_ = row.test_accuracy;
    if (last || writer.due_after_epoch(position_.epoch, position_.step)) save_state(last);
  }
  result.completed = position_.epoch >= options.epochs;
  if (!result.completed) save_state(true);
  result.position = position_;
  result.history = history_;
  return result;
}

// Gives the device a step from that position on.
Trainer::SubmittedStep Trainer::submit(const data::Batch& batch, Position position, double learning_rate) {
  const Tensor rate = Tensor::scalar(DataType::fp32, learning_rate);
  SubmittedStep step{.updating = (position.batch + 1) % options_.accumulate == 0,
                     .learning_rate = rate.at(0),
                     .inputs = {{"images", batch.images}, {"labels", batch.labels}}};
  if (step.updating) step.inputs.emplace("learning_rate", rate);
  step.executable = step.updating ? update_step_.get() : accumulate_step_.get();
  step.executable->submit(step.inputs);
  ++position.batch;
  if (step.updating) ++position.step;
  step.position = position;
  return step;
}

// After a run that threw: what was under way is not wanted, and its steps may count again.
void Trainer::forget_failure() {
  for (Executable* executable : {update_step_.get(), accumulate_step_.get()}) {
    if (executable != nullptr) executable->discard();
  }
  if (works_ahead()) variables_->set(kHaltedState, Tensor(DataType::fp32, {}));
}

// Returns when the step was sound, or when it was skipped because 16-bit gradients overflowed: the loss scale
// has been halved.
void Trainer::check_finite(const std::map<std::string, Tensor>& inputs,
                           const std::map<std::string, Tensor>& outputs, bool updating) {
  const double loss = outputs.at("loss").at(0);
  const double norm = outputs.contains("gradient_norm") ? outputs.at("gradient_norm").at(0) : 0;
  if (!std::isfinite(loss)) explain_not_finite(inputs, updating, fmt::format("the loss is {}", loss));
  if (updating) skipped_ = std::isfinite(norm) ? 0 : skipped_ + 1;
  // The loss scale has long reached its least value, 1.
  const bool hopeless = precision_ != Precision::fp16 || skipped_ > kSkipped;
  if (!std::isfinite(norm) && hopeless)
    explain_not_finite(inputs, updating, fmt::format("the norm of the gradients is {}", norm));
}

std::optional<std::pair<std::string, double>> Trainer::first_not_finite() const {
  for (const nn::Variable& variable : variables_list_) {
    if (variable.data_type != DataType::fp32) continue;
    const Tensor tensor = variables_->get(variable.name);
    for (float value : tensor.data<float>()) {
      if (!std::isfinite(value)) return std::pair{variable.name, static_cast<double>(value)};
    }
  }
  return std::nullopt;
}

void Trainer::check_variables() const {
  if (const auto broken = first_not_finite()) {
    fail(
        ErrorCode::not_finite,
        "after step {}: '{}' holds {}, though the losses were finite: look at the data and the learning rate",
        position_.step, broken->first, broken->second);
  }
}

void Trainer::explain_not_finite(const std::map<std::string, Tensor>& inputs, bool updating,
                                 const std::string& what) {
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
  const StepOptions steps = step_options(batch_);
  const auto checked = compile(
      updating ? *build_training_step(model_, steps).graph : *build_accumulating_step(model_, steps).graph,
      device_, options);
  checked->bind(variables_);
  try {
    checked->run(inputs);
  } catch (const Error& error) {
    fail(error.code(), "step {}: {}: {}", step, what, error.what());
  }
  fail(ErrorCode::not_finite, "step {}: {}", step, what);
}

Evaluation Trainer::evaluate(const data::Loader& loader, const std::atomic<bool>* stop) {
  const int64_t batch = loader.options().batch_size;
  if (evaluation_ == nullptr || evaluation_batch_ != batch) {
    CompileOptions options = compile_options();
    options.passes.frozen = true;
    const StepGraph graph = build_evaluation(model_, options_.loss, batch, options_.ema_decay > 0);
    evaluation_ = compile(*graph.graph, device_, options);
    evaluation_batch_ = batch;
  }
  evaluation_->bind(variables_);  // the weights have changed: folded and packed ones are made anew
  return train::evaluate(*evaluation_, loader, stop);
}

}  // namespace tessera::train
