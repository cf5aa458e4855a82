#include "tessera/train/trainer.h"

#include <charconv>
#include <cmath>
#include <utility>

#include "tessera/base/clock.h"
#include "tessera/base/error.h"
#include "tessera/base/file.h"

namespace tessera::train {
namespace {

constexpr int64_t kSamples = 400;  // of a run's history
constexpr const char* kFormat = "tessera training state";
constexpr const char* kVersion = "1";
constexpr int64_t kSkipped = 40;  // steps in a row that may overflow in 16 bits while the loss scale falls

int64_t read_integer(const Checkpoint& state, const std::string& key, const std::string& source) {
  const auto found = state.metadata.find(key);
  require(found != state.metadata.end(), ErrorCode::invalid_file, "{}: '{}' is missing: no training state",
          source, key);
  int64_t value = -1;
  const char* end = found->second.data() + found->second.size();
  const auto [rest, error] = std::from_chars(found->second.data(), end, value);
  require(error == std::errc() && rest == end && value >= 0, ErrorCode::invalid_file,
          "{}: '{}' is '{}', no count", source, key, found->second);
  return value;
}

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
  initialise_variables(*variables_, variables_list_, options_.seed);
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
  const int64_t total_steps = steps_per_epoch * options.epochs;
  const optim::Schedule schedule =
      options.schedule ? options.schedule(total_steps, steps_per_epoch) : optim::constant();
  const int64_t sample_every = std::max<int64_t>(1, total_steps / kSamples);
  prepare(batch_size);
  forget_failure();

  FitResult result;
  const auto interrupted = [&](const Position& position) {
    return (options.stop != nullptr && options.stop->load()) ||
           (options.max_steps > 0 && position.step >= options.max_steps);
  };
  const auto save_state = [&](const char* name) {
    if (options.checkpoints.empty()) return;
    check_variables();
    make_folder(options.checkpoints);
    Checkpoint state = training_state();
    state.metadata.insert(options.metadata.begin(), options.metadata.end());
    save(state, options.checkpoints / name);
  };

  double learning_rate = 0;
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
    // A tail that would not fill an update is left out.
    while (next.batch < steps_per_epoch * options_.accumulate && !interrupted(next)) {
      const std::optional<data::Batch> batch = epoch.next();
      require(batch.has_value(), ErrorCode::internal, "the loader ended early");
      SubmittedStep step =
          submit(*batch, next, options_.optimizer.learning_rate * schedule.factor(next.step));
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
    if (position_.batch < steps_per_epoch * options_.accumulate) break;  // interrupted inside the epoch
    check_variables();
    position_.batch = 0;
    ++position_.epoch;

    EpochRow row{.epoch = position_.epoch,
                 .step = position_.step,
                 .learning_rate = learning_rate,
                 .seconds = seconds_since(epoch_start)};
    if (seen > 0) {
      row.train_loss = loss_sum * static_cast<double>(batch_size) / static_cast<double>(seen);
      row.train_accuracy = correct_sum / static_cast<double>(seen);
      row.images_per_second = static_cast<double>(seen) / row.seconds;
    }
    const bool last = position_.epoch == options.epochs;
    const bool due = options.evaluate_every > 0 && position_.epoch % options.evaluate_every == 0;
    if (options.evaluation != nullptr && (last || due)) {
      result.evaluation = evaluate(*options.evaluation);
      row.test_loss = result.evaluation.loss;
      row.test_accuracy = result.evaluation.accuracy;
    }
    history_.epochs.push_back(row);
    if (options.on_epoch) options.on_epoch(row);
    if (!options.checkpoints.empty() && row.test_accuracy > best_accuracy_) {
      best_accuracy_ = row.test_accuracy;
      make_folder(options.checkpoints);
      save(checkpoint(), options.checkpoints / "best.safetensors");
    }
    if (last || (options.checkpoint_every > 0 && position_.epoch % options.checkpoint_every == 0)) {
      save_state("last.safetensors");
    }
  }
  result.completed = position_.epoch >= options.epochs;
  if (!result.completed) save_state("last.safetensors");
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
    fail(ErrorCode::not_finite,
         "after step {}: '{}' holds {}, though the losses were finite (ReLU turns NaN into 0): look at the "
         "data "
         "and the learning rate",
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

Evaluation Trainer::evaluate(const data::Loader& loader) {
  const int64_t batch = loader.options().batch_size;
  if (evaluation_ == nullptr || evaluation_batch_ != batch) {
    CompileOptions options = compile_options();
    options.passes.frozen = true;
    evaluation_ = compile(*build_evaluation(model_, batch, options_.ema_decay > 0).graph, device_, options);
    evaluation_batch_ = batch;
  }
  evaluation_->bind(variables_);  // the weights have changed: folded and packed ones are made anew
  return train::evaluate(*evaluation_, loader);
}

Checkpoint Trainer::checkpoint() const {
  Checkpoint result;
  for (const nn::Variable& variable : network_list_) {
    const bool averaged = options_.ema_decay > 0 && variable.role == InputRole::parameter;
    const std::string source = averaged ? "ema/" + variable.name : variable.name;
    result.tensors.emplace(variable.name, nn::to_file_layout(variable, variables_->get(source)));
  }
  result.metadata["model"] = model_.name;
  return result;
}

void Trainer::load_weights(const std::filesystem::path& path) {
  write_variables(*variables_, network_list_, load_checkpoint(path).tensors, path.string());
  for (const nn::Variable& variable : network_list_) {
    if (options_.ema_decay > 0 && variable.role == InputRole::parameter) {
      variables_->set("ema/" + variable.name, variables_->get(variable.name));
    }
  }
}

Checkpoint Trainer::training_state() const {
  return {read_variables(*variables_, variables_list_),
          {{"format", kFormat},
           {"version", kVersion},
           {"model", model_.name},
           {"optimizer", options_.optimizer.name},
           {"epoch", std::to_string(position_.epoch)},
           {"batch", std::to_string(position_.batch)},
           {"step", std::to_string(position_.step)},
           {"best_accuracy", fmt::format("{}", best_accuracy_)},
           {"history", to_json(history_)}}};
}

void Trainer::restore(const Checkpoint& state, const std::string& source) {
  const auto expect = [&](const char* key, const std::string& value) {
    const auto found = state.metadata.find(key);
    require(found != state.metadata.end() && found->second == value, ErrorCode::invalid_file,
            "{}: {} is '{}', this run has '{}'", source, key,
            found == state.metadata.end() ? "missing" : found->second, value);
  };
  expect("format", kFormat);
  expect("version", kVersion);
  expect("model", model_.name);
  expect("optimizer", options_.optimizer.name);
  const Position position{.epoch = read_integer(state, "epoch", source),
                          .batch = read_integer(state, "batch", source),
                          .step = read_integer(state, "step", source)};
  RunHistory history;
  if (const auto found = state.metadata.find("history"); found != state.metadata.end()) {
    history = history_from_json(found->second, source);
  }
  write_variables(*variables_, variables_list_, state.tensors, source);
  position_ = position;
  history_ = std::move(history);
  if (const auto found = state.metadata.find("best_accuracy"); found != state.metadata.end()) {
    best_accuracy_ = std::strtod(found->second.c_str(), nullptr);
  }
}

}  // namespace tessera::train
