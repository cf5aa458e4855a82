#include <algorithm>
#include <cstdio>
#include <functional>
#include <optional>

#include <fmt/format.h>
#include <sys/resource.h>

#include "tessera/base/progress.h"
#include "tessera/compile/batch_memory.h"
#include "tessera/data/loader.h"
#include "tessera/models/formula.h"
#include "tessera/train/checkpoint.h"

#include "cli/json.h"
#include "cli/median.h"
#include "cli/model_options.h"
#include "cli/network_file.h"
#include "cli/step_cycle.h"

namespace tessera::cli {
namespace {

struct BenchArguments {
  ModelArguments model;
  int64_t iterations = 10;
  int64_t warmup = 2;
  int64_t loader_workers = 0;  // 0: no loader
  bool json = false;
  bool check = false;
  int64_t steps = 2;  // of --check --train
  int64_t batches = 1;
  double learning_rate = kLearningRate;
};

int64_t peak_resident_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss * int64_t{1024};
}

// Batch 0 of the formula is the one of the golden values.
std::map<std::string, Tensor> batch_by_formula(const models::Model& model, int64_t size, int64_t index) {
  const std::string suffix = index == 0 ? "" : fmt::format(".{}", index);
  return {{"images", models::formula::images("input" + suffix, model.input_type(size).static_shape())},
          {"labels", models::formula::labels("labels" + suffix, size, model.options.classes)}};
}

std::vector<double> losses_of_steps(const BenchArguments& arguments, const models::Model& model,
                                    const StepCycle& cycle) {
  std::vector<std::map<std::string, Tensor>> batches;
  for (int64_t index = 0; index < std::min(arguments.batches, arguments.steps); ++index) {
    batches.push_back(batch_by_formula(model, arguments.model.batch, index));
    batches.back()["learning_rate"] = Tensor::scalar(DataType::fp32, arguments.learning_rate);
  }
  std::vector<double> losses;
  for (int64_t step = 0; step < arguments.steps; ++step) {
    const auto& batch = batches[static_cast<size_t>(step) % batches.size()];
    losses.push_back(train::mean_of(cycle.at(step).run(batch), "loss"));
  }
  return losses;
}

// Of a network in a file, with its own weights; inputs by the formula of their names, whole numbers 0 and 1.
std::vector<double> outputs_of_file(const BenchArguments& arguments) {
  const CompiledModel compiled = compile_model(arguments.model);
  load_variables(arguments.model, compiled);
  const Graph& graph = *compiled.step.graph;
  const Feeds outputs = compiled.executable->run(make_inputs(graph, [](const Value& input, Tensor& tensor) {
    for (int64_t i = 0; i < tensor.size(); ++i) {
      const auto index = static_cast<uint64_t>(i);
      tensor.set(i, is_floating(input.data_type())
                        ? models::formula::uniform(input.name(), index)
                        : static_cast<double>(models::formula::label(input.name(), index, 2)));
    }
  }));
  const std::vector<double> all = outputs.at(graph.outputs().front().name).to_doubles();
  return {all.begin(), all.begin() + std::min<int64_t>(10, std::ssize(all))};
}

void print_check(const BenchArguments& arguments, const std::string& name,
                 const std::vector<double>& values) {
  if (arguments.json) {
    fmt::print("{}\n", dump_json({{name, values}}));
  } else {
    fmt::print("{}: {:.6g}\n", name, fmt::join(values, " "));
  }
}

// What bench/compare and bench/curves hold against the peers: ten logits, or the losses of some steps, of the
// network, images and labels that a formula gives (tests/golden/README.md).
void run_check(const BenchArguments& arguments) {
  if (network_format_of(arguments.model.model) != nullptr)
    return print_check(arguments, "outputs", outputs_of_file(arguments));
  const models::Model model = make_model(arguments.model);
  const StepCycle cycle(arguments.model);
  const std::map<std::string, Tensor> weights = models::formula::weights(models::build(model, 1).variables);
  cycle.load([&](const std::string& name) {
    const auto found = weights.find(name);
    return found != weights.end() ? found->second : starting_value(cycle.first(), name);
  });
  std::string name = "outputs";
  std::vector<double> values;
  if (arguments.model.train) {
    name = "losses";
    values = losses_of_steps(arguments, model, cycle);
  } else {
    std::map<std::string, Tensor> inputs = batch_by_formula(model, arguments.model.batch, 0);
    inputs.erase("labels");
    const Tensor logits = cycle.at(0).run(inputs).at("logits");
    for (int64_t i = 0; i < std::min<int64_t>(10, model.options.classes); ++i) values.push_back(logits.at(i));
  }
  print_check(arguments, name, values);
}

// Synthetic images as a training reads them: as bytes, by a loader, in memory that the device takes them
// from.
class LoadedBatches {
 public:
  LoadedBatches(const BenchArguments& arguments, std::shared_ptr<Device> device)
      : loader_(dataset(make_model(arguments.model), arguments.model.batch),
                {.batch_size = arguments.model.batch,
                 .workers = arguments.loader_workers,
                 .augmentation = {.horizontal_flip = true}}),
        memory_(std::make_shared<BatchMemory>(std::move(device))) {}

  Feeds next() {
    std::optional<data::Batch> batch = stream_ != nullptr ? stream_->next() : std::nullopt;
    if (!batch.has_value()) {
      stream_ = loader_.open_into(memory_, {.epoch = epoch_++});
      batch = stream_->next();
    }
    return std::move(batch->fields);
  }

 private:
  static std::shared_ptr<const data::Dataset> dataset(const models::Model& model, int64_t batch) {
    constexpr int64_t kBatches = 1024;
    const models::ClassifierOptions& options = model.options;
    return std::make_shared<data::SyntheticDataset>(
        data::SyntheticOptions{.size = kBatches * batch,
                               .image_shape = {options.image_size, options.image_size, options.channels},
                               .classes = options.classes});
  }

  data::Loader loader_;
  std::shared_ptr<const BatchMemory> memory_;
  std::unique_ptr<data::Stream> stream_;
  int64_t epoch_ = 0;
};

// A training step's loss is read while the next step is under way, as a training loop reads it; a result of
// inference is waited for. Of a cycle of steps each time is the mean of one cycle: its last step alone
// exchanges.
std::vector<double> time_runs(const BenchArguments& arguments, const StepCycle& cycle,
                              const std::function<Feeds()>& next) {
  int64_t submitted = 0;
  int64_t received = 0;
  for (int64_t i = 0; i < arguments.warmup * cycle.steps(); ++i) cycle.at(i).run(next());
  if (arguments.model.train) cycle.at(submitted++).submit(next());
  std::vector<double> milliseconds;
  for (int64_t i = 0; i < arguments.iterations; ++i) {
    const auto start = Clock::now();
    for (int64_t step = 0; step < cycle.steps(); ++step) {
      cycle.at(submitted++).submit(next());
      cycle.at(received++).receive();
    }
    milliseconds.push_back(seconds_since(start) * 1e3 / static_cast<double>(cycle.steps()));
  }
  cycle.discard();
  return milliseconds;
}

void run_bench(const BenchArguments& arguments) {
  const int64_t ranks = arguments.model.ranks.count;
  std::optional<LongWork> preparing(std::in_place);
  const StepCycle cycle(arguments.model);
  const CompiledModel& compiled = cycle.first();
  const DeviceDescription device = compiled.device->description();
  const MemoryPlan& plan = compiled.executable->memory_plan();
  if (!arguments.json) {
    fmt::print("{}\n{}\n", device_summary(device, compiled.fallback),
               memory_summary(plan, device.memory_bytes));
    std::fflush(stdout);  // before what may fail for want of it
  }
  cycle.make_ready(arguments.model);
  std::optional<LoadedBatches> loaded;
  if (arguments.loader_workers > 0) loaded.emplace(arguments, compiled.device);
  preparing.reset();
  const std::vector<double> milliseconds =
      time_runs(arguments, cycle, [&] { return loaded.has_value() ? loaded->next() : Feeds{}; });
  std::vector<double> rates;
  for (double time : milliseconds) rates.push_back(static_cast<double>(ranks * compiled.batch) / time * 1e3);
  if (arguments.json) {
    nlohmann::json json = {{"model", arguments.model.model},
                           {"batch", compiled.batch},
                           {"ranks", ranks},
                           {"train", arguments.model.train},
                           {"device", device.name},
                           {"device_model", device.model},
                           {"versions", device.versions},
                           {"milliseconds", milliseconds},
                           {"samples_per_second", rates},
                           {"peak_memory_bytes", peak_resident_bytes()},
                           {"arena_bytes", plan.peak_bytes},
                           {"variable_bytes", plan.variable_bytes},
                           {"persistent_bytes", plan.persistent_bytes},
                           {"packed_bytes", plan.packed_bytes},
                           {"local_steps", cycle.steps()},
                           {"compile_seconds", cycle.compile_seconds()}};
    if (!compiled.fallback.empty()) json["device_fallback"] = compiled.fallback;
    if (const std::optional<int64_t> peak = compiled.device->peak_bytes()) json["device_peak_bytes"] = *peak;
    fmt::print("{}\n", dump_json(json));
    return;
  }
  fmt::print("{} {} batch {}{}{} on {}: {:.1f} {}/s, {:.2f} ms (median of {}), compiled in {:.2f} s\n",
             arguments.model.model, arguments.model.train ? "training" : "inference", compiled.batch,
             ranks > 1 ? fmt::format(" on each of {} ranks", ranks) : "",
             cycle.steps() > 1 ? fmt::format(", averaged after every {} steps", cycle.steps()) : "",
             device.name, median(rates),
             network_format_of(arguments.model.model) == nullptr ? "images" : "samples", median(milliseconds),
             arguments.iterations, cycle.compile_seconds());
}

void add_bench(CLI::App* command) {
  command->footer(
      "Examples:\n"
      "  tessera bench resnet50 --batch 32 --train --iterations 5\n"
      "  tessera bench mlp --batch 32 --train --check --steps 20 --batches 4 --learning-rate 0.01");
  auto arguments = std::make_shared<BenchArguments>();
  add_model_arguments(*command, arguments->model);
  command->add_option("--iterations", arguments->iterations, "Timed runs")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  command->add_option("--warmup", arguments->warmup, "Runs before the timed ones")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  CLI::Option* loader =
      command
          ->add_option(
              "--loader", arguments->loader_workers,
              "Feed each training step a batch of its own, as bytes, by a loader with so many threads; "
              "otherwise the images lie on the device")
          ->check(CLI::Range(1, 256))
          ->needs("--train");
  command
      ->add_option(
          "--local-steps", arguments->model.local_steps,
          "Of several ranks: how many steps each trains by itself before all average; an iteration is as "
          "many, and its time their mean")
      ->check(CLI::PositiveNumber)
      ->needs("--train");
  command->add_flag("--json", arguments->json, "Print every sample as JSON");
  CLI::Option* check = command->add_flag(
      "--check", arguments->check,
      "Print outputs instead of times: those of weights and images made by a formula (of a file its own "
      "weights); with --train losses");
  check->excludes(loader);
  CLI::Option* steps = command->add_option("--steps", arguments->steps, "How many losses --check prints")
                           ->capture_default_str()
                           ->check(CLI::PositiveNumber);
  CLI::Option* batches =
      command->add_option("--batches", arguments->batches, "How many batches they take in turn")
          ->capture_default_str()
          ->check(CLI::PositiveNumber);
  CLI::Option* rate = command->add_option("--learning-rate", arguments->learning_rate, "Of these steps")
                          ->capture_default_str()
                          ->check(CLI::NonNegativeNumber);
  for (CLI::Option* option : {steps, batches, rate}) option->needs(check)->needs("--train");
  command->callback([arguments] {
    arguments->model.bytes = arguments->loader_workers > 0;
    join_ranks(arguments->model);
    arguments->check ? run_check(*arguments) : run_bench(*arguments);
  });
}

const CommandRegistration kRegistration(
    {.name = "bench",
     .documentation = "Time a network's training step or inference on synthetic images",
     .add = add_bench});

}  // namespace
}  // namespace tessera::cli
