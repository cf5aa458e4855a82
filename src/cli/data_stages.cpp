#include "cli/data_stages.h"

#include <algorithm>
#include <ctime>

#include "tessera/data/loader.h"
#include "tessera/data/sounds.h"

#include "cli/data_repeated.h"

namespace tessera::cli {
namespace {

// Seconds of the processor that `work` takes for each of so many samples, in turn.
template <typename Work>
double seconds_of(const data::EncodedSamples& samples, int64_t count, const Work& work) {
  const double begin = processor_seconds();
  for (int64_t i = 0; i < count; ++i) work(i % samples.size());
  return (processor_seconds() - begin) / static_cast<double>(count);
}

// The files of the first samples, in memory.
struct KeptFiles {
  int64_t count = 0;  // how many samples are timed
  std::vector<std::vector<std::byte>> files;

  KeptFiles(const data::EncodedSamples& samples, const BenchArguments& arguments)
      : count(std::min<int64_t>(samples.size(), arguments.batch * arguments.iterations)) {
    constexpr int64_t kMost = 512;
    for (int64_t i = 0; i < std::min(count, kMost); ++i) files.push_back(samples.bytes(i));
  }
  int64_t index(int64_t i) const { return i % std::ssize(files); }
  const std::vector<std::byte>& operator[](int64_t i) const { return files[static_cast<size_t>(index(i))]; }
};

data::BatchOptions batching_of(const BenchArguments& arguments) {
  return {.batch_size = arguments.batch, .workers = arguments.threads == 1 ? 0 : arguments.threads};
}

}  // namespace

double processor_seconds() {
  timespec time{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

std::vector<Stage> image_stages(const data::EncodedSamples& samples, const BenchArguments& arguments) {
  const KeptFiles kept(samples, arguments);
  std::vector<uint8_t> pixels(static_cast<size_t>(3 * arguments.size * arguments.size));
  const auto decode = [&](int64_t i, int64_t size, data::ResizeFilter filter) {
    data::EncodedImage image(kept[i], samples.name(kept.index(i)));
    const data::ImageInfo& info = image.info();
    const data::Rectangle crop = data::random_crop({}, info.height, info.width, 1, 0, i);
    image.decode({.crop = crop, .height = size, .width = size, .filter = filter, .scaled = size > 1},
                 std::span(pixels).first(static_cast<size_t>(3 * size * size)));
  };
  const double read = seconds_of(samples, kept.count, [&](int64_t i) { samples.bytes(i); });
  const double decoded =
      seconds_of(samples, kept.count, [&](int64_t i) { decode(i, 1, data::ResizeFilter::nearest); });
  const double resized = seconds_of(
      samples, kept.count, [&](int64_t i) { decode(i, arguments.size, data::ResizeFilter::bilinear); });
  return {{"read", read}, {"decode", decoded}, {"resize", std::max(resized - decoded, 0.0)}};
}

std::vector<Stage> sound_stages(const data::EncodedSamples& samples, const BenchArguments& arguments) {
  const KeptFiles kept(samples, arguments);
  std::vector<float> part;
  // The first seconds of a file, at its own rate or at the one that is wanted.
  const auto decode = [&](int64_t i, bool resampled) {
    data::EncodedSound sound(kept[i], samples.name(kept.index(i)));
    const int64_t rate = resampled ? arguments.rate : sound.info().rate;
    const auto wanted = static_cast<int64_t>(arguments.seconds * static_cast<double>(rate));
    part.resize(static_cast<size_t>(std::min(sound.frames_at(rate), wanted)));
    sound.decode(rate, 0, part);
  };
  const double read = seconds_of(samples, kept.count, [&](int64_t i) { samples.bytes(i); });
  const double decoded = seconds_of(samples, kept.count, [&](int64_t i) { decode(i, false); });
  const double resampled = seconds_of(samples, kept.count, [&](int64_t i) { decode(i, true); });
  return {{"read", read}, {"decode", decoded}, {"resample", std::max(resampled - decoded, 0.0)}};
}

std::shared_ptr<const data::Source> image_batches(EncodedSamples samples, const BenchArguments& arguments) {
  data::EncodedDatasetOptions options{
      .image_shape = {arguments.size, arguments.size, 3}, .mirror = true, .host_share = arguments.cpu_share};
  const int64_t count = (arguments.iterations + arguments.warmup) * arguments.batch;
  std::shared_ptr<const data::Dataset> dataset;
  if (arguments.cache == "none") {
    dataset = std::make_shared<data::EncodedDataset>(
        std::make_shared<const RepeatedSamples>(std::move(samples), count), options);
  } else {
    options.keep = arguments.cache == "files" ? data::KeptSamples::files : data::KeptSamples::pixels;
    const int64_t once = samples->size();
    dataset = std::make_shared<RepeatedImages>(
        std::make_shared<data::EncodedDataset>(std::move(samples), options), std::max(count, once));
  }
  const auto place = arguments.device.empty() ? data::DecodePlace::cpu : data::DecodePlace::gpu;
  return std::make_shared<data::Loader>(std::move(dataset), batching_of(arguments),
                                        data::ImageExampleOptions{.random_views = true, .decode = place});
}

std::shared_ptr<const data::Source> sound_batches(EncodedSamples samples, const BenchArguments& arguments) {
  auto examples = std::make_shared<data::SoundExamples>(
      std::move(samples),
      data::SoundExampleOptions{.rate = arguments.rate, .seconds = {arguments.seconds}, .random = true});
  return std::make_shared<data::ExampleBatches>(std::move(examples), batching_of(arguments));
}

}  // namespace tessera::cli
