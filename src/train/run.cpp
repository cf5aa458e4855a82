#include "tessera/train/run.h"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <memory>

#include <fmt/chrono.h>

#include "tessera/base/error.h"
#include "tessera/base/file.h"
#include "tessera/train/machine.h"
#include "tessera/train/progress.h"
#include "tessera/train/report.h"
#include "tessera/train/tensorboard.h"

namespace tessera::train {
namespace {

data::Loader make_training_loader(const Recipe& recipe) {
  const Recipe::Data& d = recipe.data;
  data::AugmentOptions augmentation{.crop_padding = d.crop_padding,
                                    .horizontal_flip = d.flip,
                                    .mean = {d.mean.begin(), d.mean.end()},
                                    .deviation = {d.std.begin(), d.std.end()}};
  if (d.cutout > 0) {
    const auto share =
        static_cast<double>(d.cutout * d.cutout) / static_cast<double>(d.image_size * d.image_size);
    augmentation.erase_probability = 1;
    augmentation.erase_minimum_share = share;
    augmentation.erase_maximum_share = share;
  }
  return {make_dataset(recipe, data::Split::train),
          {.batch_size = recipe.train.batch,
           .shuffle = d.shuffle,
           .seed = static_cast<uint64_t>(recipe.train.seed),
           .prefetch = d.prefetch,
           .augmentation = augmentation}};
}

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

// Writes the events of one run; a resumed run goes on from its step.
class EventLog {
 public:
  EventLog(const std::filesystem::path& folder, int64_t first_step)
      : writer_(folder, {.first_step = first_step}) {}

  void step(const StepEvent& event) {
    writer_.add_scalar("train/loss", event.loss, event.position.step);
    writer_.add_scalar("train/learning_rate", event.learning_rate, event.position.step);
    writer_.add_scalar("train/images_per_second", event.images_per_second, event.position.step);
  }
  void epoch(const EpochRow& row) {
    writer_.add_scalar("epoch/train_loss", row.train_loss, row.step);
    writer_.add_scalar("epoch/train_accuracy", row.train_accuracy, row.step);
    if (!std::isnan(row.test_accuracy)) {
      writer_.add_scalar("epoch/test_loss", row.test_loss, row.step);
      writer_.add_scalar("epoch/test_accuracy", row.test_accuracy, row.step);
    }
    writer_.flush();
  }
  void text(const std::string& tag, const std::string& text) {
    writer_.add_text(tag, text, 0);
    writer_.flush();
  }

 private:
  EventWriter writer_;
};

// Makes the folder with the recipe and the event log in it; takes a new folder away again when that fails.
std::unique_ptr<EventLog> begin_run(const std::filesystem::path& folder, const Recipe& recipe,
                                    int64_t first_step) {
  const bool existed = std::filesystem::exists(folder);
  try {
    make_folder(folder);
    write_file(folder / "recipe.toml", std::string_view(to_toml(recipe)));
    auto events = std::make_unique<EventLog>(folder, first_step);
    events->text("recipe", to_toml(recipe));
    return events;
  } catch (const std::exception&) {
    std::error_code ignored;
    if (!existed) std::filesystem::remove_all(folder, ignored);
    throw;
  }
}

RunSummary summarise(const Recipe& recipe, const Trainer& trainer, const FitResult& result) {
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
  const auto classes = static_cast<size_t>(test.class_count());
  report.confusion.assign(classes * classes, 0);
  std::vector<Prediction> wrong;
  for (const Prediction& prediction : result.evaluation.predictions) {
    const auto truth = static_cast<size_t>(prediction.label);
    const auto predicted = static_cast<size_t>(prediction.predicted);
    if (predicted < classes) ++report.confusion[truth * classes + predicted];
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

// What the order of the data and the meaning of a position depend on: a resumed run must have the same.
std::map<std::string, std::string> fixed_settings(const Recipe& recipe) {
  return {{"train.batch", std::to_string(recipe.train.batch)},
          {"train.seed", std::to_string(recipe.train.seed)},
          {"train.accumulate", std::to_string(recipe.train.accumulate)}};
}

void check_settings(const Recipe& recipe, const Checkpoint& state, const std::string& source) {
  for (const auto& [key, value] : fixed_settings(recipe)) {
    const auto found = state.metadata.find(key);
    require(found == state.metadata.end() || found->second == value, ErrorCode::invalid_argument,
            "{}: the run was begun with {} = {} and cannot go on with {}", source, key, found->second, value);
  }
}

}  // namespace

FitResult run_recipe(const Recipe& recipe, const RunOptions& options) {
  const std::filesystem::path last = options.folder / "checkpoints" / "last.safetensors";
  const bool exists = std::filesystem::exists(last);
  require(!exists || options.resume, ErrorCode::io,
          "{} holds a run already: go on with it by --resume, or choose another --out",
          options.folder.string());
  require(!options.resume || exists, ErrorCode::io, "{}: there is no checkpoint to resume from",
          last.string());

  const data::Loader loader = make_training_loader(recipe);
  const data::Loader evaluation = make_evaluation_loader(recipe, data::Split::test);
  Trainer trainer(make_model(recipe), make_trainer_options(recipe));
  if (!recipe.model.weights.empty() && !options.resume) trainer.load_weights(recipe.model.weights);
  int64_t first_step = 0;
  if (options.resume) {
    const Checkpoint state = load_checkpoint(last);
    check_settings(recipe, state, last.string());
    trainer.restore(state, last.string());
    first_step = std::stoll(state.metadata.at("step"));
  }
  // What cannot be compiled leaves no folder.
  const MemoryPlan& memory = trainer.step(recipe.train.batch).memory_plan();
  const std::unique_ptr<EventLog> events = begin_run(options.folder, recipe, first_step);
  Progress progress;
  if (!options.quiet) progress.print(memory_summary(memory, trainer.device().description().memory_bytes));
  const int64_t steps_per_epoch = loader.batches_per_epoch() / recipe.train.accumulate;
  FitOptions fit{
      .epochs = recipe.train.epochs,
      .schedule = [&](int64_t total,
                      int64_t per_epoch) { return make_schedule(recipe.schedule, total, per_epoch); },
      .evaluation = &evaluation,
      .evaluate_every = recipe.train.evaluate_every,
      .checkpoints = options.folder / "checkpoints",
      .checkpoint_every = recipe.train.checkpoint_every,
      .max_steps = options.max_steps,
      .stop = options.stop,
      .metadata = fixed_settings(recipe)};
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
  const RunSummary summary = summarise(recipe, trainer, result);
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
