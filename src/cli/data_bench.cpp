#include <algorithm>
#include <cmath>
#include <ctime>
#include <numeric>

#include <fmt/format.h>

#include "tessera/base/clock.h"
#include "tessera/base/error.h"
#include "tessera/compile/batch_memory.h"
#include "tessera/compile/device.h"
#include "tessera/data/loader.h"

#include "cli/data_commands.h"
#include "cli/data_parts.h"
#include "cli/data_repeated.h"
#include "cli/json.h"

namespace tessera::cli {
namespace {

struct BenchArguments {
  std::string folder;
  int64_t size = 224;
  int64_t batch = 32;
  int64_t threads = 1;
  int64_t iterations = 20;
  int64_t warmup = 1;
  bool normalize = false;
  bool json = false;
  std::string device;  // that decodes, and on which batches arrive; "": none
};

// Where the images of batches arrive.
class Arrival {
 public:
  explicit Arrival(const std::string& device) {
    if (device.empty()) return;
    device_ = Device::open(device);
    memory_ = std::make_shared<const BatchMemory>(device_);
    queue_ = device_->queue();
  }
  // Null: in any memory of the host.
  const std::shared_ptr<const BatchMemory>& memory() const { return memory_; }
  // Is there when it returns.
  void take(const Tensor& images) {
    if (queue_ == nullptr) return;
    if (buffer_ == nullptr) buffer_ = queue_->input_buffer(static_cast<int64_t>(images.bytes()));
    buffer_->load(images.owner());
    buffer_->show();
    queue_->synchronize();
  }

 private:
  std::shared_ptr<Device> device_;
  std::shared_ptr<const BatchMemory> memory_;
  std::shared_ptr<Queue> queue_;
  std::unique_ptr<InputBuffer> buffer_;
};

// Mean and deviation of ImageNet's channels, times 255.
constexpr float kMean[] = {123.675F, 116.28F, 103.53F};
constexpr float kDeviation[] = {58.395F, 57.12F, 57.375F};

double processor_seconds() {
  timespec time{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// Seconds of the processor that `work` takes for each of so many samples, in turn.
template <typename Work>
double seconds_of(const data::EncodedSamples& samples, int64_t count, const Work& work) {
  const double begin = processor_seconds();
  for (int64_t i = 0; i < count; ++i) work(i % samples.size());
  return (processor_seconds() - begin) / static_cast<double>(count);
}

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

struct Stage {
  std::string name;
  double seconds = 0;  // of one processor, for one image
};

// The stages of making one image, each by itself.
std::vector<Stage> measure_stages(const data::EncodedSamples& samples, const BenchArguments& arguments) {
  const int64_t count = std::min<int64_t>(samples.size(), arguments.batch * arguments.iterations);
  std::vector<std::vector<std::byte>> files(static_cast<size_t>(std::min<int64_t>(count, 512)));
  const auto kept = static_cast<int64_t>(files.size());
  for (int64_t i = 0; i < kept; ++i) files[static_cast<size_t>(i)] = samples.bytes(i);
  std::vector<uint8_t> pixels(static_cast<size_t>(3 * arguments.size * arguments.size));
  const auto decode = [&](int64_t i, int64_t size, data::ResizeFilter filter) {
    data::EncodedImage image(files[static_cast<size_t>(i % kept)], samples.name(i));
    const data::ImageInfo& info = image.info();
    const data::Rectangle crop = data::random_crop({}, info.height, info.width, 1, 0, i);
    image.decode({.crop = crop, .height = size, .width = size, .filter = filter, .scaled = size > 1},
                 std::span(pixels).first(static_cast<size_t>(3 * size * size)));
  };
  const double read = seconds_of(samples, count, [&](int64_t i) { samples.bytes(i); });
  const double decoded =
      seconds_of(samples, count, [&](int64_t i) { decode(i, 1, data::ResizeFilter::nearest); });
  const double resized =
      seconds_of(samples, count, [&](int64_t i) { decode(i, arguments.size, data::ResizeFilter::bilinear); });
  return {{"read", read}, {"decode", decoded}, {"resize", std::max(resized - decoded, 0.0)}};
}

void normalize(const Tensor& images, std::vector<float>& target) {
  const auto pixels = images.data<uint8_t>();
  target.resize(pixels.size());
  for (size_t i = 0; i + 2 < pixels.size(); i += 3) {
    for (size_t c = 0; c < 3; ++c)
      target[i + c] = (static_cast<float>(pixels[i + c]) - kMean[c]) * (1 / kDeviation[c]);
  }
}

// Milliseconds of each batch of the whole pipeline.
struct BatchTimes {
  std::vector<double> clock;
  std::vector<double> processor;  // of all threads together
};
BatchTimes measure_batches(const std::shared_ptr<const data::EncodedSamples>& samples,
                           const BenchArguments& arguments) {
  const int64_t batches = arguments.iterations + arguments.warmup;
  const auto dataset = std::make_shared<data::EncodedDataset>(
      std::make_shared<const RepeatedSamples>(samples, batches * arguments.batch),
      data::EncodedDatasetOptions{.image_shape = {arguments.size, arguments.size, 3}, .mirror = true});
  const data::Loader loader(
      dataset, {.batch_size = arguments.batch,
                .workers = arguments.threads == 1 ? 0 : arguments.threads,
                .random_views = true,
                .decode = arguments.device.empty() ? data::DecodePlace::cpu : data::DecodePlace::gpu});
  Arrival arrival(arguments.device);
  BatchTimes times;
  std::vector<float> normalized;
  const auto stream = loader.open_into(arrival.memory(), {});
  for (int64_t number = 0; number < batches; ++number) {
    const double begin = processor_seconds();
    const auto begin_clock = Clock::now();
    const data::Batch batch = *stream->next();
    arrival.take(batch.fields.at("images"));
    if (arguments.normalize) normalize(batch.fields.at("images"), normalized);
    if (number < arguments.warmup) continue;
    times.processor.push_back(1e3 * (processor_seconds() - begin));
    times.clock.push_back(1e3 * seconds_since(begin_clock));
  }
  return times;
}

void run_bench(const BenchArguments& arguments) {
  const DataPart part = open_data_parts(arguments.folder).front();
  require(!part.sounds, ErrorCode::unsupported, "{}: holds sounds; images alone are timed", arguments.folder);
  require(part.samples->size() >= arguments.batch, ErrorCode::invalid_argument,
          "{}: {} images do not fill one batch of {} (--batch)", arguments.folder, part.samples->size(),
          arguments.batch);
  const std::vector<Stage> stages = measure_stages(*part.samples, arguments);
  const Stage& slowest = *std::ranges::max_element(stages, {}, &Stage::seconds);
  const BatchTimes times = measure_batches(part.samples, arguments);
  const double rate = 1e3 * static_cast<double>(arguments.batch) / mean(times.processor);
  const double clock_rate = 1e3 * static_cast<double>(arguments.batch) / mean(times.clock);
  if (arguments.json) {
    nlohmann::json rates = nlohmann::json::object();
    for (const Stage& stage : stages) rates[stage.name] = 1 / std::max(stage.seconds, 1e-9);
    nlohmann::json object{{"milliseconds", times.clock},
                          {"processor_milliseconds", times.processor},
                          {"samples_per_second", clock_rate},
                          {"stages", rates},
                          {"limited_by", slowest.name}};
    fmt::print("{}\n", dump_json(object));
    return;
  }
  for (const Stage& stage : stages) {
    fmt::print("{:<8} {:>10.0f} images/s for each processor\n", stage.name,
               1 / std::max(stage.seconds, 1e-9));
  }
  fmt::print(
      "batches  {:>10.0f} images/s for each processor, {:.0f} images/s by the clock with {} threads; {} "
      "limits\n",
      rate, clock_rate, arguments.threads, slowest.name);
}

void add_bench(CLI::App* command) {
  command->footer(
      "Times are the processor's, so that what else runs on the machine hardly counts.\n"
      "Example: tessera data bench data/photographs --batch 64");
  auto arguments = std::make_shared<BenchArguments>();
  command->add_option("folder", arguments->folder, "Folder of images, or of tar shards")->required();
  command->add_option("--size", arguments->size, "Height and width of the result, in pixels")
      ->capture_default_str()
      ->check(CLI::Range(1, 4096));
  command->add_option("--batch", arguments->batch, "Images of a batch")
      ->capture_default_str()
      ->check(CLI::Range(1, 65536));
  command->add_option("--threads", arguments->threads, "That make batches")
      ->capture_default_str()
      ->check(CLI::Range(1, 256));
  command->add_option("--iterations", arguments->iterations, "Batches that are timed")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  command->add_option("--warmup", arguments->warmup, "Batches before them")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  command->add_flag("--normalize", arguments->normalize,
                    "Also scale and normalize on the processor, which a network does by itself");
  command->add_option("--device", arguments->device,
                      "A GPU that decodes what its decoder takes, and to which batches are brought");
  command->add_flag("--json", arguments->json,
                    "Print milliseconds of each batch, images/s of each stage, and what limits");
  command->callback([arguments] { run_bench(*arguments); });
}

const DataCommandRegistration kRegistration(
    {.name = "bench",
     .documentation = "Time reading, decoding and resizing, and say which limits",
     .add = add_bench});

}  // namespace
}  // namespace tessera::cli
