#include "tessera/train/run.h"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <optional>

#include <fmt/chrono.h>

#include "tessera/base/file.h"
#include "tessera/base/log.h"
#include "tessera/train/machine.h"
#include "tessera/train/progress.h"
#include "tessera/train/report.h"

#include "event_log.h"
#include "run_folder.h"

namespace tessera::train {
namespace {

optim::Schedule make_schedule(const Recipe::Schedule& s, int64_t total_steps, int64_t steps_per_epoch) {
  const auto steps_of = [&](double epochs) {
    return static_cast<int64_t>(std::lround(epochs * static_cast<double>(steps_per_epoch)));
  };
  const int64_t warmup_steps = s.warmup_steps + steps_of(s.warmup_epochs);
  optim::Schedule schedule = optim::constant();
  if (s.name == "step") {
    std::vector<int64_t> milestones;
    for (double epochs : s.milestones) milestones.push_back(steps_of(epochs));
    schedule = optim::step(milestones, s.gamma);
  } else if (s.name == "cosine") {
    schedule = optim::cosine(total_steps, s.final);
  } else if (s.name == "polynomial") {
    schedule = optim::polynomial(total_steps, s.power, s.final);
  } else if (s.name == "one_cycle") {
    return optim::one_cycle(total_steps, s.peak, s.initial, s.final);
  }
  return warmup_steps > 0 ? optim::warmup(warmup_steps, schedule, s.initial) : schedule;
}

RunSummary summarize(const Recipe& recipe, const Trainer& trainer, const FitResult& result) {
  const DeviceDescription device = trainer.device().description();
  RunSummary summary{.device = device.name,
                     .precision = std::string(to_string(trainer.precision())),
                     .network = recipe.model.name,
                     .parameters = trainer.parameter_count(),
                     .epochs = result.position.epoch,
                     .train_seconds = result.history.train_seconds(),
                     .versions = device.versions};
  if (!result.evaluation.predictions.empty()) summary.test_accuracy = result.evaluation.accuracy;
  double images = 0;
  for (const EpochRow& row : result.history.epochs) images += row.images_per_second * row.seconds;
  if (summary.train_seconds > 0) summary.images_per_second = images / summary.train_seconds;
  summary.versions["tessera"] = read_machine().tessera_version;
  return summary;
}

// The picture of an example as bytes, as the data set holds it.
std::vector<uint8_t> picture(const data::Dataset& dataset, int64_t index) {
  std::vector<float> image(static_cast<size_t>(element_count(dataset.image_shape())));
  int32_t label = 0;
  dataset.read(index, image, label);
  std::vector<uint8_t> pixels;
  for (float value : image)
    pixels.push_back(static_cast<uint8_t>(std::lround(255 * std::clamp(value, 0.0F, 1.0F))));
  return pixels;
}

Report make_report(const Recipe& recipe, const RunSummary& summary, const FitResult& result,
                   const data::Dataset& test) {
  constexpr size_t kMistakes = 24;
  Report report{.data = recipe.data.path.empty()
                            ? recipe.data.kind
                            : std::filesystem::path(recipe.data.path).filename().string(),
                .date = fmt::format("{:%Y-%m-%d %H:%M}", fmt::localtime(std::time(nullptr))),
                .summary = summary,
                .history = result.history,
                .machine = read_machine(),
                .recipe = to_toml(recipe),
                .classes = test.class_names()};
  std::vector<Prediction> wrong;
  for (const Prediction& prediction : result.evaluation.predictions) {
    ++report.confusion[{prediction.label, prediction.predicted}];
    if (prediction.label != prediction.predicted) wrong.push_back(prediction);
  }
  std::stable_sort(wrong.begin(), wrong.end(),
                   [](const Prediction& a, const Prediction& b) { return a.loss > b.loss; });
  if (wrong.size() > kMistakes) wrong.resize(kMistakes);
  const Shape& shape = test.image_shape();
  for (const Prediction& prediction : wrong) {
    report.mistakes.push_back({.pixels = picture(test, prediction.index),
                               .height = shape[0],
                               .width = shape[1],
                               .channels = shape[2],
                               .index = prediction.index,
                               .truth = prediction.label,
                               .prediction = prediction.predicted,
                               .confidence = prediction.confidence});
  }
  return report;
}

}  // namespace

FitResult run_recipe(const Recipe& recipe, const RunOptions& options) {
  RunFolder folder(options.folder, recipe, options.resume);
  std::optional<Checkpoint> state;
  std::optional<Recipe> begun;
  std::vector<SettingChange> changes;
  if (options.resume) {
    state = load_checkpoint(folder.last());
    begun = folder.begun_recipe(state->metadata);
    changes = changes_on_resume(*begun, recipe, options.asked, folder.last().string());
  }
  const data::Loader loader = make_training_loader(recipe);
  const data::Loader evaluation = make_evaluation_loader(recipe, data::Split::test);
  std::string fallback;
  Trainer trainer(make_model(recipe), make_trainer_options(recipe, &fallback));
  if (!recipe.model.weights.empty() && !options.resume) trainer.load_weights(recipe.model.weights);
  int64_t first_step = 0;
  if (state.has_value()) {
    trainer.restore(*state, folder.last().string());
    first_step = std::stoll(state->metadata.at("step"));
    state.reset();
  }
  const MemoryPlan& memory = trainer.step(recipe.train.batch).memory_plan();
  Progress progress;
  std::optional<EventLog> events;
  const int64_t steps_per_epoch = loader.batches_per_epoch() / recipe.train.accumulate;
  FitOptions fit{
      .epochs = recipe.train.epochs,
      .schedule = [&](int64_t total,
                      int64_t per_epoch) { return make_schedule(recipe.schedule, total, per_epoch); },
      .evaluation = &evaluation,
      .evaluate_every = recipe.train.evaluate_every,
      .checkpoints = folder.checkpoints(),
      .checkpoint_every = recipe.train.checkpoint_every,
      .checkpoint_steps = recipe.train.checkpoint_steps,
      .checkpoint_minutes = recipe.train.checkpoint_minutes,
      .keep_checkpoints = recipe.train.keep_checkpoints,
      .max_steps = options.max_steps,
      .stop = options.stop,
      .metadata = {{"recipe", to_toml(recipe)}},
      .changes = changes};
  fit.on_begin = [&] {
    folder.begin(recipe, begun);
    events.emplace(options.folder, first_step);
    events->text("recipe", to_toml(recipe));
    for (const SettingChange& change : changes) {
      log_info("{} is {} from step {} on, and was {}", change.key, change.after, first_step, change.before);
    }
    const DeviceDescription device = trainer.device().description();
    progress.print(device_summary(device, fallback));
    if (!options.quiet) progress.print(memory_summary(memory, device.memory_bytes));
  };
  double loss = kNotMeasured;
  double accuracy = kNotMeasured;
  double rate = kNotMeasured;
  const auto smooth = [](double& average, double value) {
    average = std::isnan(average) ? value : 0.95 * average + 0.05 * value;
  };
  fit.on_step = [&](const StepEvent& event) {
    smooth(loss, event.loss);
    smooth(accuracy, event.accuracy);
    smooth(rate, event.images_per_second);
    events->step(event);
    if (options.quiet) return;
    progress.update({.epoch = event.position.epoch + 1,
                     .epochs = recipe.train.epochs,
                     .step = event.position.batch / recipe.train.accumulate,
                     .steps_per_epoch = steps_per_epoch,
                     .loss = loss,
                     .accuracy = accuracy,
                     .images_per_second = rate});
  };
  fit.on_epoch = [&](const EpochRow& row) {
    events->epoch(row);
    if (!options.quiet) progress.finish_epoch(row, recipe.train.epochs);
  };
  FitResult result = trainer.fit(loader, fit);
  if (!result.completed) return result;

  save(trainer.checkpoint(), options.folder / "model.safetensors");
  if (result.evaluation.predictions.empty()) result.evaluation = trainer.evaluate(evaluation);
  const RunSummary summary = summarize(recipe, trainer, result);
  write_summary(options.folder / "summary.json", summary);
  write_report(options.folder / "report.html", make_report(recipe, summary, result, evaluation.dataset()));
  return result;
}

FinishedRun open_run(const std::filesystem::path& folder, const std::vector<std::string>& overrides) {
  // The run spelled out every key, also those without effect: warnings would say nothing new.
  const std::filesystem::path path = folder / "recipe.toml";
  std::vector<std::string> warnings;
  Recipe recipe = parse_recipe(read_text_file(path), path.string(), overrides, &warnings);
  check_recipe_files(recipe);
  Trainer trainer(make_model(recipe), make_trainer_options(recipe));
  trainer.load_weights(folder / "model.safetensors");
  return {std::move(recipe), std::move(trainer)};
}

}  // namespace tessera::train
