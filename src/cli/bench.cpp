#include <algorithm>
#include <cstdio>
#include <functional>
#include <map>
#include <optional>

#include <fmt/format.h>
#include <sys/resource.h>

#include "tessera/base/error.h"
#include "tessera/base/progress.h"
#include "tessera/train/step.h"

#include "cli/formula_check.h"
#include "cli/json.h"
#include "cli/median.h"
#include "cli/step_cycle.h"

namespace tessera::cli {
namespace {

struct BenchArguments {
  ModelArguments model;
  int64_t iterations = 10;
  int64_t warmup = 2;
  bool json = false;
  bool check = false;
  CheckOptions checked = {};
};

int64_t peak_resident_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss * int64_t{1024};
}

void run_check(const BenchArguments& arguments) {
  const auto [name, values] = check_by_formula(arguments.model, arguments.checked);
  if (arguments.json) {
    fmt::print("{}\n", dump_json({{name, values}}));
  } else {
    fmt::print("{}: {:.6g}\n", name, fmt::join(values, " "));
  }
}

// Or all of it is made once, as what depends on parameters and constants alone is.
bool computes_anything(const Executable& executable) {
  return std::ranges::any_of(executable.nodes(), [](const NodeReport& node) { return !node.once; });
}

struct TimedRuns {
  std::vector<double> milliseconds;
  // How much each measure of a training step counts in a batch, on average: gaps, texts of packed rows.
  std::map<std::string, double> weights;
};

void add_weights(const std::map<std::string, Tensor>& outputs, std::map<std::string, double>& sums) {
  const std::string ending = train::weight_output("");
  for (const auto& [name, value] : outputs) {
    if (name.ends_with(ending)) sums[name.substr(0, name.size() - ending.size())] += value.at(0);
  }
}

// A training step's loss is read while the next step is under way, as a training loop reads it; a result of
// inference is waited for. Of a cycle of steps each time is the mean of one cycle: its last step alone
// exchanges.
TimedRuns time_runs(const BenchArguments& arguments, const StepCycle& cycle,
                    const std::function<RunFeeds()>& next) {
  int64_t submitted = 0;
  int64_t received = 0;
  const auto submit = [&](int64_t step) {
    const RunFeeds inputs = next();
    cycle.at(step).submit(inputs.host, inputs.there);
  };
  for (int64_t i = 0; i < arguments.warmup * cycle.steps(); ++i) {
    submit(i);
    cycle.at(i).receive();
  }
  if (arguments.model.train) submit(submitted++);
  TimedRuns timed;
  for (int64_t i = 0; i < arguments.iterations; ++i) {
    const auto start = Clock::now();
    for (int64_t step = 0; step < cycle.steps(); ++step) {
      submit(submitted++);
      add_weights(cycle.at(received++).receive(), timed.weights);
    }
    timed.milliseconds.push_back(seconds_since(start) * 1e3 / static_cast<double>(cycle.steps()));
  }
  cycle.discard();
  for (auto& [name, weight] : timed.weights) weight /= static_cast<double>(received);
  return timed;
}

void run_bench(const BenchArguments& arguments) {
  const int64_t ranks = arguments.model.ranks.count;
  const Clock::time_point begin = Clock::now();
  std::optional<LongWork> preparing(std::in_place);
  const std::unique_ptr<Subject> subject = open_subject(arguments.model);
  const StepCycle cycle(*subject);
  const CompiledModel& compiled = cycle.first();
  const DeviceDescription device = compiled.device->description();
  const MemoryPlan& plan = compiled.executable->memory_plan();
  if (!arguments.json) {
    fmt::print("{}\n{}\n", device_summary(device, compiled.fallback),
               memory_summary(plan, device.memory_bytes));
    std::fflush(stdout);  // before what may fail for want of it
  }
  cycle.make_ready();
  require(computes_anything(*compiled.executable), ErrorCode::invalid_argument,
          "{}: what it serves is the same at every run, and nothing is left to time", arguments.model.model);
  std::function<RunFeeds()> next = [] { return RunFeeds{}; };  // what is staged
  if (arguments.model.loader_workers > 0) next = subject->loader(compiled);
  preparing.reset();
  const double ready_seconds = seconds_since(begin) - compiled.opening_seconds;
  const TimedRuns timed = time_runs(arguments, cycle, next);
  const std::vector<double>& milliseconds = timed.milliseconds;
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
                           {"accumulate", cycle.accumulated()},
                           {"local_steps", cycle.averaged()},
                           {"compile_seconds", cycle.compile_seconds()},
                           {"ready_seconds", ready_seconds}};
    if (arguments.model.train) json["weights"] = timed.weights;
    if (!compiled.fallback.empty()) json["device_fallback"] = compiled.fallback;
    if (const std::optional<int64_t> peak = compiled.device->peak_bytes()) json["device_peak_bytes"] = *peak;
    fmt::print("{}\n", dump_json(json));
    return;
  }
  fmt::print(
      "{} {} batch {}{}{}{} on {}: {:.1f} {}/s, {:.2f} ms (median of {}), compiled in {:.2f} s, ready "
      "{:.2f} s after the device\n",
      arguments.model.model, arguments.model.train ? "training" : "inference", compiled.batch,
      ranks > 1 ? fmt::format(" on each of {} ranks", ranks) : "",
      cycle.accumulated() > 1 ? fmt::format(", {} batches an update", cycle.accumulated()) : "",
      cycle.averaged() > 1 ? fmt::format(", averaged after every {} updates", cycle.averaged()) : "",
      device.name, median(rates), subject->samples(), median(milliseconds), arguments.iterations,
      cycle.compile_seconds(), ready_seconds);
}

void add_bench(CLI::App* command) {
  command->footer(
      "Examples:\n"
      "  tessera bench resnet50 --batch 32 --train --iterations 5\n"
      "  tessera bench recipes/decoder.toml --train --precision fp16 --tune\n"
      "  tessera bench mlp --batch 32 --train --check --steps 20 --batches 4 --learning-rate 0.01");
  auto arguments = std::make_shared<BenchArguments>();
  add_model_arguments(*command, arguments->model);
  command->add_option("--iterations", arguments->iterations, "Timed runs")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  command->add_option("--warmup", arguments->warmup, "Runs before the timed ones")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  CLI::Option* loader = add_loader_arguments(*command, arguments->model);
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
      "Print outputs instead of times: those of weights and inputs made by a formula (of a file its own "
      "weights); with --train losses");
  check->excludes(loader);
  CLI::Option* steps =
      command->add_option("--steps", arguments->checked.steps, "How many losses --check prints")
          ->capture_default_str()
          ->check(CLI::PositiveNumber);
  CLI::Option* batches =
      command->add_option("--batches", arguments->checked.batches, "How many batches they take in turn")
          ->capture_default_str()
          ->check(CLI::PositiveNumber);
  CLI::Option* rate =
      command->add_option("--learning-rate", arguments->checked.learning_rate, "Of these steps")
          ->capture_default_str()
          ->check(CLI::NonNegativeNumber);
  command
      ->add_option("--below", arguments->checked.below,
                   "Of a network in a file: whole numbers that it reads are below this one")
      ->capture_default_str()
      ->check(CLI::PositiveNumber)
      ->needs(check);
  for (CLI::Option* option : {steps, batches, rate}) option->needs(check)->needs("--train");
  command->callback([arguments] {
    join_ranks(arguments->model);
    arguments->check ? run_check(*arguments) : run_bench(*arguments);
  });
}

const CommandRegistration kRegistration(
    {.name = "bench",
     .documentation = "Time a training step or inference, of a network or of a recipe",
     .add = add_bench});

}  // namespace
}  // namespace tessera::cli
