#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include "tessera/base/clock.h"
#include "tessera/base/error.h"
#include "tessera/compile/batch_memory.h"
#include "tessera/compile/device.h"

#include "cli/data_commands.h"
#include "cli/data_parts.h"
#include "cli/data_stages.h"
#include "cli/json.h"

namespace tessera::cli {
namespace {

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
  void take(const data::Batch& batch) {
    if (queue_ == nullptr) return;
    if (const auto made = batch.device_fields.find("images"); made != batch.device_fields.end()) {
      if (made->second.ready() != nullptr) made->second.ready()->wait();
      return;
    }
    const Tensor& images = batch.fields.at("images");
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

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
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
BatchTimes measure_batches(const data::Source& batches, const BenchArguments& arguments) {
  Arrival arrival(arguments.device);
  BatchTimes times;
  std::vector<float> normalized;
  int64_t epoch = 0;
  auto stream = batches.open_into(arrival.memory(), {});
  int64_t left = arguments.iterations + arguments.warmup;
  // What is kept is there after an epoch.
  if (arguments.cache != "none") {
    while (stream->next().has_value()) {
    }
  }
  while (left > 0) {
    const double begin = processor_seconds();
    const auto begin_clock = Clock::now();
    std::optional<data::Batch> batch = stream->next();
    if (!batch.has_value()) {
      stream = batches.open_into(arrival.memory(), {.epoch = ++epoch});
      continue;
    }
    arrival.take(*batch);
    if (arguments.normalize) normalize(batch->fields.at("images"), normalized);
    if (left-- > arguments.iterations) continue;
    times.processor.push_back(1e3 * (processor_seconds() - begin));
    times.clock.push_back(1e3 * seconds_since(begin_clock));
  }
  return times;
}

double rate_of(const BenchArguments& arguments, const std::vector<double>& milliseconds) {
  return 1e3 * static_cast<double>(arguments.batch) / mean(milliseconds);
}

// What is decoded by the CPU while the device decodes the rest, and how fast that is.
struct Balance {
  double share = 0;
  double rate = 0;  // samples/s by the clock
};
constexpr double kShares[] = {0, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5};

std::vector<Balance> measure_balances(const DataPart& part, BenchArguments arguments) {
  // What the first one opens, the decoder's library among it, counts for none.
  measure_batches(*image_batches(part.samples, arguments), arguments);
  std::vector<Balance> balances;
  for (const double share : kShares) {
    arguments.cpu_share = share;
    const BatchTimes times = measure_batches(*image_batches(part.samples, arguments), arguments);
    balances.push_back({share, rate_of(arguments, times.clock)});
    if (arguments.json) continue;
    fmt::print("cpu_share {:<4} {:>6.0f} {}/s by the clock with {} threads\n", share, balances.back().rate,
               part.plural(), arguments.threads);
  }
  return balances;
}

void run_bench(BenchArguments arguments) {
  const DataPart part = open_data_parts(arguments.folder).front();
  require(!(part.sounds && (arguments.normalize || arguments.cache != "none" || !arguments.device.empty())),
          ErrorCode::invalid_argument, "{}: holds sounds; --normalize, --cache and --device are of images",
          arguments.folder);
  require(part.samples->size() >= arguments.batch, ErrorCode::invalid_argument,
          "{}: {} {} do not fill one batch of {} (--batch)", arguments.folder, part.samples->size(),
          part.plural(), arguments.batch);
  require((arguments.cpu_share == 0 && !arguments.balance) || !arguments.device.empty(),
          ErrorCode::invalid_argument,
          "--cpu-share and --balance are of images that a GPU decodes (--device)");
  const std::vector<Stage> stages =
      part.sounds ? sound_stages(*part.samples, arguments) : image_stages(*part.samples, arguments);
  const Stage& slowest = *std::ranges::max_element(stages, {}, &Stage::seconds);
  std::vector<Balance> balances;
  if (arguments.balance) {
    balances = measure_balances(part, arguments);
    arguments.cpu_share = std::ranges::max_element(balances, {}, &Balance::rate)->share;
  }
  const BatchTimes times = measure_batches(
      part.sounds ? *sound_batches(part.samples, arguments) : *image_batches(part.samples, arguments),
      arguments);
  const double rate = rate_of(arguments, times.processor);
  const double clock_rate = rate_of(arguments, times.clock);
  if (arguments.json) {
    nlohmann::json rates = nlohmann::json::object();
    for (const Stage& stage : stages) rates[stage.name] = 1 / std::max(stage.seconds, 1e-9);
    nlohmann::json object{{"milliseconds", times.clock},      {"processor_milliseconds", times.processor},
                          {"samples_per_second", clock_rate}, {"stages", rates},
                          {"limited_by", slowest.name},       {"cpu_share", arguments.cpu_share}};
    for (const Balance& balance : balances)
      object["balance"].push_back({{"cpu_share", balance.share}, {"samples_per_second", balance.rate}});
    fmt::print("{}\n", dump_json(object));
    return;
  }
  for (const Stage& stage : stages) {
    fmt::print("{:<8} {:>10.0f} {}/s for each processor\n", stage.name, 1 / std::max(stage.seconds, 1e-9),
               part.plural());
  }
  fmt::print(
      "batches  {:>10.0f} {}/s for each processor, {:.0f} {}/s by the clock with {} threads; {} limits\n",
      rate, part.plural(), clock_rate, part.plural(), arguments.threads, slowest.name);
  if (arguments.balance) fmt::print("fastest with data.cpu_share = {}\n", arguments.cpu_share);
}

void add_bench(CLI::App* command) {
  command->footer(
      "Times are the processor's, so that what else runs on the machine hardly counts.\n"
      "Example: tessera data bench data/photographs --batch 64");
  auto arguments = std::make_shared<BenchArguments>();
  command->add_option("folder", arguments->folder, "Folder of images or sounds, or of their shards")
      ->required();
  command->add_option("--size", arguments->size, "Height and width of images, in pixels")
      ->capture_default_str()
      ->check(CLI::Range(1, 4096));
  command->add_option("--rate", arguments->rate, "Samples a second that sounds are resampled to")
      ->capture_default_str()
      ->check(CLI::Range(1000, 1 << 20));
  command->add_option("--seconds", arguments->seconds, "Seconds of each sound that are made, at most")
      ->capture_default_str()
      ->check(CLI::Range(0.01, 3600.0));
  command->add_option("--batch", arguments->batch, "Images or sounds of a batch")
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
  command
      ->add_option("--cache", arguments->cache,
                   "What of images stays in memory, up to a GiB: files or pixels; all are read once before")
      ->check(CLI::IsMember({"none", "files", "pixels"}));
  command->add_flag("--normalize", arguments->normalize,
                    "Also scale and normalize on the processor, which a network does by itself");
  command->add_option("--device", arguments->device,
                      "A GPU that decodes what its decoder takes, and to which batches are brought");
  command
      ->add_option("--cpu-share", arguments->cpu_share,
                   "Of the images that it would decode, the share that the CPU does")
      ->check(CLI::Range(0.0, 1.0));
  command->add_flag("--balance", arguments->balance, "Try several such shares and take the fastest");
  command->add_flag("--json", arguments->json,
                    "Print milliseconds of each batch, images/s or sounds/s of each stage, and what limits");
  command->callback([arguments] { run_bench(*arguments); });
}

const DataCommandRegistration kRegistration(
    {.name = "bench",
     .documentation = "Time reading, decoding and resizing or resampling, and say which limits",
     .add = add_bench});

}  // namespace
}  // namespace tessera::cli
