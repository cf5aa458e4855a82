// Classification of sounds as recipes ask for it: a folder for each class.
#include <algorithm>
#include <functional>

#include "tessera/base/error.h"
#include "tessera/tasks/image_classification.h"
#include "tessera/tasks/sound_classification.h"
#include "tessera/train/task_registry.h"

#include "tasks/balanced.h"
#include "tasks/data_kind.h"
#include "tasks/prefetch.h"

namespace tessera::tasks {
namespace {

const SoundClassificationOptions kDefaults;

nn::SpectrogramOptions spectrogram_of(const Options& settings) {
  const int64_t rate = settings.integer("data.rate");
  return {.rate = rate,
          .window = settings.integer("model.window"),
          .transform = settings.integer("model.transform"),
          .bands = settings.integer("model.bands"),
          .lowest = settings.real("model.lowest"),
          .highest = settings.get_or<double>("model.highest", static_cast<double>(rate) / 2)};
}

nn::SoundAugmentation augmentation_of(const Options& settings) {
  const std::vector<double> decibels = settings.reals("augment.noise_decibels");
  require(decibels.size() == 2, ErrorCode::invalid_argument,
          "'augment.noise_decibels' has {} numbers, expected two", decibels.size());
  return {.speeds = settings.reals("augment.speeds"),
          .noise = settings.real("augment.noise"),
          .least_decibels = decibels[0],
          .most_decibels = decibels[1]};
}

SoundClassificationOptions options_of(const Options& settings) {
  return {.classes = settings.integer("model.classes"),
          .hop = settings.integer("data.hop"),
          .spectrogram = spectrogram_of(settings),
          .augmentation = augmentation_of(settings),
          .masks = {.band_masks = settings.integer("augment.band_masks"),
                    .widest_bands = settings.integer("augment.widest_bands"),
                    .time_masks = settings.integer("augment.time_masks"),
                    .longest_share = settings.real("augment.longest_share")},
          .widths = settings.integers("model.widths"),
          .dropout = settings.real("model.dropout"),
          .loss = nn::cross_entropy({.smoothing = settings.real("train.smoothing")})};
}

data::SoundExampleOptions example_options(const Options& settings, data::Split split) {
  return {.rate = settings.integer("data.rate"),
          .hop = settings.integer("data.hop"),
          .seconds = settings.reals("data.seconds"),
          .random = split == data::Split::train,
          .broken = data::broken_samples_of(settings.text("data.broken"))};
}

std::shared_ptr<const data::EncodedSamples> open_sounds(const Options& settings, data::Split split) {
  auto samples = data::open_labeled_sounds(settings.text("data.path"),
                                           {.split = split, .test_share = settings.real("data.test_share")});
  const auto found = std::ssize(samples->class_names());
  const int64_t classes = settings.integer("model.classes");
  require(found <= classes, ErrorCode::invalid_argument,
          "the sounds in '{}' are of {} classes, the network has {} (model.classes)",
          settings.text("data.path"), found, classes);
  return samples;
}

struct LabeledSounds {
  std::shared_ptr<const data::EncodedSamples> samples;
  std::shared_ptr<const data::SoundExamples> examples;
};

LabeledSounds labeled_sounds(const Options& settings, data::Split split) {
  auto samples = open_sounds(settings, split);
  return {samples, std::make_shared<data::SoundExamples>(samples, example_options(settings, split))};
}

data::BatchOptions batching_of(const Options& settings, data::Split split) {
  const Prefetch prefetch = prefetch_of(settings);
  const bool training = split == data::Split::train;
  return {.batch_size = settings.integer("train.batch"),
          .shuffle = training && settings.boolean("data.shuffle"),
          .balanced = training && settings.boolean("data.balanced"),
          .drop_last = training,
          .seed = static_cast<uint64_t>(settings.integer("train.seed")),
          .workers = prefetch.workers == 0 ? 0 : settings.integer("data.workers"),
          .prefetch = prefetch.batches};
}

std::shared_ptr<const data::Source> batches_of(const Options& settings, const LabeledSounds& sounds,
                                               data::Split split) {
  return std::make_shared<data::ExampleBatches>(sounds.examples, batching_of(settings, split));
}

ClassifiedExamples classified(const Options& settings, const LabeledSounds& sounds) {
  const auto picture = [examples = sounds.examples, options = spectrogram_of(settings)](int64_t index) {
    const int64_t hop = examples->options().hop;
    const int64_t steps = examples->buckets()[static_cast<size_t>(examples->bucket_of(index))].at("steps");
    std::vector<int16_t> sound(static_cast<size_t>(steps * hop));
    int32_t length = 0;
    int32_t label = 0;
    examples->read(index, {},
                   {std::as_writable_bytes(std::span(sound)), std::as_writable_bytes(std::span(&length, 1)),
                    std::as_writable_bytes(std::span(&label, 1))});
    return spectrogram_picture(sound, hop, options);
  };
  return {sounds.samples->class_names(), picture};
}

train::TestSet make_test_set(const Options& settings) {
  const LabeledSounds sounds = labeled_sounds(settings, data::Split::test);
  return {batches_of(settings, sounds, data::Split::test),
          classification_evaluator(classified(settings, sounds))};
}

train::PredictionSet predictions_of(const Options& settings, const LabeledSounds& sounds,
                                    const std::vector<std::string>& classes) {
  std::vector<std::string> names;
  for (int64_t i = 0; i < sounds.samples->size(); ++i) names.push_back(sounds.samples->name(i));
  return {batches_of(settings, sounds, data::Split::test), classification_text(classes, names)};
}

train::PredictionSet make_predictions(const Options& settings) {
  const LabeledSounds sounds = labeled_sounds(settings, data::Split::test);
  return predictions_of(settings, sounds, sounds.samples->class_names());
}

train::PredictionSet predict_files(const Options& settings, const std::vector<std::string>& files) {
  const auto classes = open_sounds(settings, data::Split::test)->class_names();
  LabeledSounds sounds{.samples = data::named_files(files), .examples = {}};
  sounds.examples =
      std::make_shared<data::SoundExamples>(sounds.samples, example_options(settings, data::Split::test));
  return predictions_of(settings, sounds, classes);
}

train::Workload create(const Options& settings) {
  return {.task = sound_classification(options_of(settings)),
          .data = data_name(settings),
          .training =
              [settings] {
                return batches_of(settings, labeled_sounds(settings, data::Split::train), data::Split::train);
              },
          .test = [settings] { return make_test_set(settings); },
          .predictions = [settings] { return make_predictions(settings); },
          .file_predictions =
              [settings](const std::vector<std::string>& files) { return predict_files(settings, files); },
          .output_names = [settings] { return open_sounds(settings, data::Split::test)->class_names(); }};
}

std::vector<Contradiction> check(const Options& settings) {
  std::vector<Contradiction> found = of_data(check_path(settings.section("data")));
  check_balanced(settings, found);
  try {
    nn::check_sound_augmentation(augmentation_of(settings));
  } catch (const Error& error) {
    return {{{"augment.speeds", "augment.noise_decibels"}, error.what()}};
  }
  try {
    sound_classification(options_of(settings));
  } catch (const Error& error) {
    found.push_back({{"model.window", "model.transform", "model.highest", "data.hop"}, error.what()});
  }
  const std::vector<double> seconds = settings.reals("data.seconds");
  if (seconds.empty() || !std::ranges::is_sorted(seconds, std::less_equal()))
    found.push_back({{"data.seconds"}, "'data.seconds' must be numbers that rise"});
  if (settings.integer("augment.widest_bands") > settings.integer("model.bands")) {
    found.push_back({{"augment.widest_bands", "model.bands"},
                     "'augment.widest_bands' is more than there are ('model.bands')"});
  }
  return found;
}

std::vector<Option> model_options() {
  return {{.key = "classes",
           .value = kDefaults.classes,
           .documentation = "Outputs of the network: as many as the data has classes, or more",
           .limits = Limits::between(1, 1e6)},
          {.key = "widths",
           .value = kDefaults.widths,
           .documentation = "Channels of each stage of two convolutions over time, each at half the rate",
           .limits = Limits::between(1, 65536)},
          {.key = "dropout",
           .value = kDefaults.dropout,
           .documentation = "Before the last layer",
           .limits = Limits::fraction()},
          {.key = "bands",
           .value = kDefaults.spectrogram.bands,
           .documentation = "Of the mel scale, in a frame of the spectrogram",
           .limits = Limits::between(1, 1024)},
          {.key = "window",
           .value = kDefaults.spectrogram.window,
           .documentation = "Samples that a frame looks at",
           .limits = Limits::between(1, 16384)},
          {.key = "transform",
           .value = kDefaults.spectrogram.transform,
           .documentation = "Length of the discrete Fourier transform, at least the window's; even",
           .limits = Limits::between(2, 16384)},
          {.key = "lowest",
           .value = kDefaults.spectrogram.lowest,
           .documentation = "Hertz at which the bands begin",
           .limits = Limits::between(0, 1e6)},
          {.key = "highest",
           .value = kDefaults.spectrogram.highest,
           .documentation = "Hertz at which they end",
           .limits = Limits::between(0, 1e6),
           .unset = "half of `data.rate`"}};
}

std::vector<Option> data_options() {
  const data::SoundExampleOptions usual;
  return {
      path_option(
          "Folder of the sounds: a folder for each class, with files ending in .wav, .flac or .ogg, or tar "
          "shards of such; its parts `train` and `val` (or `validation`, `test`), if it has them"),
      {.key = "test_share",
       .value = 0.1,
       .documentation = "Of each class, evenly spread, not trained on, where the folder has no such parts",
       .limits = Limits::fraction(),
       .resuming = Resuming::fixed},
      {.key = "rate",
       .value = usual.rate,
       .documentation = "Samples per second; files at other rates are resampled",
       .limits = Limits::between(1000, 1e6)},
      {.key = "hop",
       .value = usual.hop,
       .documentation = "Samples from a frame of the spectrogram to the next",
       .limits = Limits::between(1, 65536)},
      {.key = "seconds",
       .value = usual.seconds,
       .documentation =
           "Lengths of the rows, rising: each sound takes the shortest that holds it; of one that is "
           "longer than the last a part is used, at random in training",
       .limits = {.low = 0, .high = 3600, .low_open = true},
       .resuming = Resuming::fixed},
      data::broken_samples_option(),
      {.key = "shuffle",
       .value = true,
       .documentation = "Whether each epoch visits the training sounds in a new order",
       .resuming = Resuming::fixed},
      balanced_option("sounds"),
      prefetch_option(),
      {.key = "workers",
       .value = int64_t{2},
       .documentation = "Threads that prepare batches, where any are prepared ahead; they change no bit",
       .limits = Limits::between(1, 256),
       .resuming = Resuming::free}};
}

std::vector<Option> augmentation_options() {
  const nn::SpectrogramMasks usual;
  const nn::SoundAugmentation usual_sounds;
  return {{.key = "speeds",
           .value = usual_sounds.speeds,
           .documentation = "Of which each training sound takes one, in hundredths (Ko et al. 2015)",
           .limits = Limits::between(0.5, 2)},
          {.key = "noise",
           .value = usual_sounds.noise,
           .documentation = "Probability with which a training sound gets Gaussian noise",
           .limits = Limits::between(0, 1)},
          {.key = "noise_decibels",
           .value = std::vector<double>{usual_sounds.least_decibels, usual_sounds.most_decibels},
           .documentation = "Of the sound to its noise, from and to",
           .limits = Limits::between(-100, 100)},
          {.key = "band_masks",
           .value = usual.band_masks,
           .documentation =
               "Stretches of bands of each spectrogram that become 0 (SpecAugment, Park et al. 2019)",
           .limits = Limits::between(0, 64)},
          {.key = "widest_bands",
           .value = usual.widest_bands,
           .documentation = "Bands of such a stretch, at most",
           .limits = Limits::between(0, 1024)},
          {.key = "time_masks",
           .value = usual.time_masks,
           .documentation = "Stretches of frames that become 0",
           .limits = Limits::between(0, 64)},
          {.key = "longest_share",
           .value = usual.longest_share,
           .documentation = "Of a row's frames, that such a stretch takes at most",
           .limits = Limits::between(0, 1)}};
}

const train::TaskRegistration kRegistration(
    {.name = "sound_classification",
     .documentation =
         "One class for each sound, from its spectrogram; test sounds are measured at the end of an epoch.",
     .sections = {{"model", model_options()},
                  {"data", data_options()},
                  {"augment", augmentation_options()},
                  {"train",
                   {{.key = "smoothing",
                     .value = 0.0,
                     .documentation = "Label smoothing of the cross-entropy",
                     .limits = Limits::fraction()}}}},
     .check = check,
     .create = create});

}  // namespace
}  // namespace tessera::tasks
