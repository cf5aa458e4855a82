#include <algorithm>
#include <functional>
#include <optional>

#include <fmt/format.h>

#include "tessera/base/error.h"
#include "tessera/base/file.h"
#include "tessera/base/progress.h"
#include "tessera/compile/exposed_time.h"
#include "tessera/compile/limit.h"
#include "tessera/device/common/jpeg_decoding.h"

#include "cli/chrome_trace.h"
#include "cli/median.h"
#include "cli/runs_at_once.h"
#include "cli/step_waits.h"
#include "cli/subject.h"

namespace tessera::cli {
namespace {

// The first run loads what kernels need, the second one is recorded where the device records.
constexpr size_t kWarmupRuns = 2;
// Each run ends where the next one begins; this one is not shown.
constexpr size_t kLastRuns = 1;

struct ProfileArguments {
  ModelArguments model;
  std::string out = "trace.json";
  size_t iterations = 5;
  size_t copies = 1;
};

struct Measurements {
  Clock::time_point start;
  TimeSpan binding;
  std::vector<std::vector<RunTimes>> copies;       // of each: the warm-up first, the last ones at the end
  NodeTimes nodes;                                 // of the first copy, while the others rest
  std::optional<StepWaits> waits = {};             // of steps that a loader feeds
  JpegDecodingTimes decoding = {};                 // of the files that the device was asked for meanwhile
  std::optional<CollectiveTime> collectives = {};  // of the first copy's nodes, where there are several ranks

  const std::vector<RunTimes>& runs() const { return copies.front(); }
};

const char* how_nodes_were_measured(const NodeTimes& times) {
  return times.recorded ? "by the device, inside one recorded step" : "one by one: the host waits for each";
}

void add_compiler(ChromeTrace& trace, int host, const Executable& executable, const Measurements& measured) {
  const ChromeTrace::Row row = trace.add_row(host, "compiler");
  const std::vector<PhaseReport>& phases = executable.phases();
  trace.add_slice(row, "build the graph, open the device", {measured.start, phases.front().time.begin});
  for (const PhaseReport& phase : phases) trace.add_slice(row, phase.name, phase.time);
  for (const PassReport& pass : executable.passes()) {
    trace.add_slice(
        row, pass.name, pass.time,
        {{"changed", pass.changed}, {"nodes before", pass.nodes_before}, {"nodes after", pass.nodes_after}});
  }
  for (const NodeReport& node : executable.nodes()) {
    if (node.candidates.empty()) continue;  // nothing to choose: the memory of its input under another shape
    auto refused = nlohmann::json::object();
    for (const CandidateReport& candidate : node.candidates) {
      if (!candidate.refused.empty()) refused[candidate.name] = candidate.refused;
    }
    trace.add_slice(row, node.name, node.choice,
                    {{"operator", node.operator_name}, {"kernel", node.kernel}, {"refused", refused}});
  }
  trace.add_slice(row, "bind variables, stage inputs", measured.binding);
}

// What the host does between the start of a run and that of the next one.
TimeSpan turn_of(const std::vector<RunTimes>& runs, size_t i) {
  return {runs[i].reading.begin, runs[i + 1].reading.begin};
}

// What the host does for each run, and the device's own time of their work where it is known. `suffix` tells
// copies apart.
void add_runs(ChromeTrace& trace, int host, int device, const std::vector<RunTimes>& runs,
              const std::string& suffix, bool loaded) {
  const ChromeTrace::Row row = trace.add_row(host, "runs" + suffix);
  const size_t shown = runs.size() - kLastRuns;
  for (size_t i = 0; i < shown; ++i) {
    const RunTimes& run = runs[i];
    trace.add_slice(row, i < kWarmupRuns ? "run (warm-up)" : "run", turn_of(runs, i),
                    {{"recorded", run.recorded}});
    if (loaded) trace.add_slice(row, "wait for a batch", run.reading);
    trace.add_slice(row, "take inputs", run.inputs);
    trace.add_slice(row, run.recorded ? "launch" : "run nodes", run.work);
    if (i > 0) trace.add_slice(row, "wait for the run before, read its outputs", runs[i - 1].outputs);
  }
  if (!runs.front().device.has_value()) return;
  const ChromeTrace::Row steps = trace.add_row(device, "steps" + suffix);
  for (size_t i = 0; i < shown; ++i) {
    trace.add_slice(steps, runs[i].recorded ? "recorded step" : "step, node by node", runs[i].device.value());
  }
}

// The runs that count.
std::vector<std::vector<RunTimes>> without_ends(std::vector<std::vector<RunTimes>> copies) {
  for (std::vector<RunTimes>& runs : copies) {
    runs.resize(runs.size() - kLastRuns);
    runs.erase(runs.begin(), runs.begin() + kWarmupRuns);
  }
  return copies;
}

nlohmann::json describe_node(const NodeReport& node, double seconds, const DeviceDescription& device) {
  nlohmann::json result = {{"operator", node.operator_name},
                           {"kernel", node.kernel},
                           {"bytes", node.bytes},
                           {"flops", node.flops}};
  if (seconds > 0) {
    result["TB/s"] = node.bytes / seconds * 1e-12;
    result["GFLOP/s"] = node.flops / seconds * 1e-9;
    const auto limit = limit_of(node, device);
    if (limit.has_value()) result["share of its limit"] = limit->seconds / seconds;
  }
  return result;
}

// One slice for each kernel, and the memory that the plan keeps in use meanwhile.
void add_nodes(ChromeTrace& trace, int device, const CompiledModel& compiled, const NodeTimes& times) {
  const Executable& executable = *compiled.executable;
  const DeviceDescription description = compiled.device->description();
  const ChromeTrace::Row row = trace.add_row(device, "nodes");
  const std::vector<NodeReport>& nodes = executable.nodes();
  const bool has_lane =
      std::any_of(nodes.begin(), nodes.end(), [](const NodeReport& node) { return !node.lane.empty(); });
  const ChromeTrace::Row lane = has_lane ? trace.add_row(device, "collectives") : row;
  const MemoryPlan& plan = executable.memory_plan();
  const std::vector<int64_t> alive = alive_bytes(plan);
  const auto count_memory = [&](Clock::time_point time, int64_t arena) {
    trace.add_counter(device, "memory in use", time,
                      {{"arena", arena},
                       {"parameters and states", plan.variable_bytes},
                       {"made of them once", plan.persistent_bytes}});
  };
  size_t step = 0;  // of the memory plan
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (nodes[i].once) continue;
    const TimeSpan& time = times.nodes[i];
    const int64_t arena = step < alive.size() ? alive[step] : 0;
    ++step;
    if (nodes[i].candidates.empty()) continue;
    trace.add_slice(nodes[i].lane.empty() ? row : lane, nodes[i].name, time,
                    describe_node(nodes[i], time.seconds(), description));
    count_memory(time.begin, arena);
  }
  if (!nodes.empty()) count_memory(times.nodes.back().end, 0);
}

std::string make_trace(const ProfileArguments& arguments, const CompiledModel& compiled,
                       const Measurements& measured) {
  const DeviceDescription description = compiled.device->description();
  ChromeTrace trace(measured.start);
  const int host = trace.add_process("host");
  const int device = trace.add_process(fmt::format("{}: {}", description.name, description.model));
  add_compiler(trace, host, *compiled.executable, measured);
  for (size_t copy = 0; copy < measured.copies.size(); ++copy) {
    const std::string suffix = measured.copies.size() == 1 ? "" : fmt::format(" of copy {}", copy + 1);
    add_runs(trace, host, device, measured.copies[copy], suffix, measured.waits.has_value());
  }
  add_nodes(trace, device, compiled, measured.nodes);
  nlohmann::json waits = nlohmann::json::object();  // milliseconds of a step
  if (measured.waits.has_value()) {
    waits = {{"pace", 1e3 * measured.waits->pace},
             {"work", 1e3 * measured.waits->work},
             {"for_host", 1e3 * measured.waits->host},
             {"for_inputs", 1e3 * measured.waits->inputs},
             {"host_for_batch", 1e3 * measured.waits->reading}};
  }
  nlohmann::json collectives = nlohmann::json::object();  // milliseconds, of one step
  if (measured.collectives.has_value()) {
    const CollectiveTime& time = *measured.collectives;
    collectives = {{"step", 1e3 * time.step},
                   {"all", 1e3 * time.all},
                   {"exposed", 1e3 * time.exposed},
                   {"exposed_share", time.share()}};
  }
  return trace.text({{"tessera", TESSERA_VERSION},
                     {"model", arguments.model.model},
                     {"batch", compiled.batch},
                     {"train", arguments.model.train},
                     {"copies", arguments.copies},
                     {"shared_time", shared_time(without_ends(measured.copies))},
                     {"loader", arguments.model.loader_workers},
                     {"waits", waits},
                     {"collectives", collectives},
                     {"precision", arguments.model.precision},
                     {"device", description.name},
                     {"device_model", description.model},
                     {"versions", description.versions},
                     {"nodes_measured", how_nodes_were_measured(measured.nodes)}});
}

void print_summary(const ProfileArguments& arguments, const CompiledModel& compiled,
                   const Measurements& measured) {
  std::vector<double> run, launch, device;  // milliseconds
  for (size_t i = kWarmupRuns; i + kLastRuns < measured.runs().size(); ++i) {
    const RunTimes& times = measured.runs()[i];
    run.push_back(turn_of(measured.runs(), i).seconds() * 1e3);
    launch.push_back(times.work.seconds() * 1e3);
    if (times.device.has_value()) device.push_back(times.device->seconds() * 1e3);
  }
  double nodes = 0;
  for (const TimeSpan& node : measured.nodes.nodes) nodes += node.seconds() * 1e3;
  fmt::print("{}\n", device_summary(compiled.device->description(), compiled.fallback));
  fmt::print("{} {} batch {} on {}: run {:.2f} ms (median of {})", arguments.model.model,
             arguments.model.train ? "training" : "inference", compiled.batch,
             compiled.device->description().name, median(run), arguments.iterations);
  if (!device.empty()) {
    fmt::print(", of which the host launches for {:.3f} ms and the device works for {:.2f} ms",
               median(launch), median(device));
  }
  if (arguments.copies > 1) {
    fmt::print("; {} copies at once, at least two of which worked in {:.0f} % of the time", arguments.copies,
               100 * shared_time(without_ends(measured.copies)));
  }
  fmt::print("; nodes {:.2f} ms, measured {}\n", nodes, how_nodes_were_measured(measured.nodes));
  if (measured.collectives.has_value()) {
    const CollectiveTime& time = *measured.collectives;
    fmt::print(
        "collectives of {} ranks {:.2f} ms, in {:.2f} ms of which nothing else went on: {:.1f} % of the "
        "step\n",
        arguments.model.ranks.count, 1e3 * time.all, 1e3 * time.exposed, 100 * time.share());
  }
  if (measured.waits.has_value())
    fmt::print("fed by {} threads: {}\n", arguments.model.loader_workers, describe(*measured.waits));
  if (const JpegDecodingTimes& times = measured.decoding; times.files > 0) {
    const double each = 1e3 * static_cast<double>(compiled.batch) / static_cast<double>(times.files);
    fmt::print(
        "decoding a batch takes its thread {:.2f} ms until fewer others decode, {:.2f} ms until the device "
        "has "
        "done what was before, {:.2f} ms to parse and {:.2f} ms to give it the files\n",
        each * times.turn, each * times.device, each * times.parsing, each * times.giving);
  }
  fmt::print("{}: open it at https://ui.perfetto.dev or in chrome://tracing\n", arguments.out);
}

JpegDecodingTimes decoding_times(Device& device) {
  const auto* decoding = device.extension<JpegDecoding>();
  return decoding != nullptr ? decoding->decoding_times() : JpegDecodingTimes{};
}

// Each run with a batch of its own; then what is staged lies on the device once more.
void trace_loaded(const Subject& subject, const CompiledModel& compiled, size_t runs,
                  Measurements& measured) {
  const std::function<RunFeeds()> next = subject.loader(compiled);
  measured.copies = {compiled.executable->trace_fed(next, runs)};
  measured.waits = waits_of(without_ends(measured.copies).front());
  if (!subject.arguments().loader_files.empty()) measured.decoding = decoding_times(*compiled.device);
  compiled.executable->stage(subject.inputs(compiled));
}

void run_profile(const ProfileArguments& arguments) {
  AtomicFile file(arguments.out);  // first, so that nothing is measured for a file that cannot be written
  const LongWork profiling;
  Measurements measured{.start = Clock::now()};
  const std::unique_ptr<Subject> subject = open_subject(arguments.model);
  const CompiledModel compiled = subject->compile();
  std::vector<CompiledModel> others;
  while (others.size() + 1 < arguments.copies) {
    others.push_back(
        subject->compile(train::StepKind::updating, std::make_shared<Workspace>(compiled.device)));
  }
  measured.binding.begin = Clock::now();
  make_ready(*subject, compiled);
  std::vector<Executable*> copies = {compiled.executable.get()};
  for (const CompiledModel& other : others) {
    make_ready(*subject, other);
    copies.push_back(other.executable.get());
  }
  measured.binding.end = Clock::now();
  const size_t runs = kWarmupRuns + arguments.iterations + kLastRuns;
  if (arguments.model.loader_workers > 0) {
    trace_loaded(*subject, compiled, runs, measured);
  } else {
    measured.copies = trace_at_once(copies, runs);
  }
  measured.nodes = compiled.executable->profile({});
  if (arguments.model.ranks.count > 1)
    measured.collectives = collective_time(compiled.executable->nodes(), measured.nodes);
  file.write(make_trace(arguments, compiled, measured));
  file.commit();
  print_summary(arguments, compiled, measured);
}

void add_profile(CLI::App* command) {
  command->footer(
      "The trace shows the compiler, each run as the host sees it and, where the device measures its own "
      "work,\n"
      "as the device sees it, each node of one more run with its kernel and its rates, and the memory in "
      "use.\n"
      "Examples:\n"
      "  tessera profile lenet --train --batch 8\n"
      "  tessera profile recipes/gan.toml --train --phase generator\n"
      "  tessera profile resnet50 --train --batch 256 --precision fp16 --device cuda --out resnet50.json\n"
      "  tessera profile mlp --train --loader 2 --iterations 100  # and where its steps wait");
  auto arguments = std::make_shared<ProfileArguments>();
  add_model_arguments(*command, arguments->model);
  command->add_option("--out", arguments->out, "The trace's file")->capture_default_str();
  command->add_option("--iterations", arguments->iterations, "Runs to show, beside two of warm-up")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  CLI::Option* loader = add_loader_arguments(*command, arguments->model);
  command
      ->add_option("--copies", arguments->copies,
                   "Executables of it that run at once on the device, each from a thread of its own")
      ->capture_default_str()
      ->check(CLI::Range(1, 64))
      ->excludes(loader);
  command->callback([arguments] {
    join_ranks(arguments->model);
    require(arguments->copies == 1 || arguments->model.ranks.count == 1, ErrorCode::invalid_argument,
            "--copies: of a step of several ranks there is one at a time");
    if (arguments->model.ranks.rank > 0)
      arguments->out += fmt::format(".rank-{}", arguments->model.ranks.rank);
    run_profile(*arguments);
  });
}

const CommandRegistration kRegistration(
    {.name = "profile",
     .documentation = "Run a network or a recipe's step and write when what ran, as a trace for Perfetto or "
                      "chrome://tracing",
     .add = add_profile});

}  // namespace
}  // namespace tessera::cli
