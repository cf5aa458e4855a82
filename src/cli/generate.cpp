#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>

#include <fmt/format.h>

#include "tessera/base/error.h"
#include "tessera/recipe/run.h"
#include "tessera/tasks/decoder_folder.h"

#include "cli/explanation.h"
#include "cli/median.h"
#include "cli/run_options.h"

namespace tessera::cli {
namespace {

struct GenerateArguments {
  RunArguments run;
  std::string prompt;
  train::GenerationOptions options;
  bool explain = false;
};

// What a training left has a recipe; what transformers left has none.
bool is_run(const std::filesystem::path& folder) {
  std::error_code ignored;
  return std::filesystem::exists(folder / "recipe.toml", ignored) ||
         !std::filesystem::exists(folder / "config.json", ignored);
}

tasks::TextNetwork open_network(const RunArguments& arguments) {
  if (!is_run(arguments.folder)) {
    require(arguments.data.empty(), ErrorCode::invalid_argument, "{} has no recipe that --data could change",
            arguments.folder);
    const std::string device = arguments.device.empty() ? "auto" : arguments.device;
    std::optional<Precision> precision;
    if (!arguments.precision.empty()) precision = parse_precision(arguments.precision);
    return tasks::open_decoder_folder(arguments.folder, Device::open(device), precision);
  }
  const auto run =
      std::make_shared<recipe::FinishedRun>(recipe::open_run(arguments.folder, overrides_of(arguments)));
  require(run->workload.continuation != nullptr, ErrorCode::invalid_argument,
          "networks of the task '{}' do not go on with text", run->workload.task.name);
  return {.continuation = run->workload.continuation(),
          .serve = [run](const nn::Task& task) { return run->trainer.serve(task); }};
}

// The pass over a token that stands in the middle of as much text as there would be.
void explain_pass(const tasks::TextNetwork& network, const GenerateArguments& arguments) {
  const int64_t capacity = std::min(network.continuation.window, arguments.options.tokens);
  ExecutableFamily passes = network.serve(network.continuation.passes(capacity));
  const std::shared_ptr<Executable> pass = passes.at({{"tokens", 1}});
  Explanation explained{.executable = *pass,
                        .device = pass->workspace()->device()->description(),
                        .fallback = {},
                        .times = {},
                        .batches = {1}};
  const auto number = [](const Shape& shape, int64_t value) {
    return Tensor::full(DataType::int32, shape, static_cast<double>(value));
  };
  const Feeds inputs{
      {"tokens", number({1, 1}, 0)}, {"places", number({1}, capacity / 2)}, {"last", number({1}, 0)}};
  explained.times = pass->profile(inputs);
  print_text(explained);
  // Without what measuring each node adds.
  constexpr size_t kRuns = 20;
  std::vector<double> seconds;
  for (const RunTimes& run : pass->trace(inputs, kRuns)) {
    if (run.device.has_value()) seconds.push_back(run.device->seconds());
  }
  if (!seconds.empty()) fmt::print("A pass takes {:.0f} us on the device\n", 1e6 * median(seconds));
}

void run_generate(const GenerateArguments& arguments) {
  const tasks::TextNetwork network = open_network(arguments.run);
  if (arguments.explain) return explain_pass(network, arguments);
  // As it comes: a text is read while the rest of it is made.
  const auto print = [](std::string_view piece) {
    fmt::print("{}", piece);
    return std::fflush(stdout) == 0;
  };
  print(arguments.prompt);
  train::continue_text(network.serve, network.continuation, arguments.prompt, arguments.options, print);
  fmt::print("\n");
}

void add_generate(CLI::App* command) {
  command->footer(
      "Examples: tessera generate runs/decoder --prompt 'The trouble with ' --temperature 0.7\n"
      "          tessera generate runs/decoder --tokens 400 --top-p 0.9 --stop % --seed 3");
  auto arguments = std::make_shared<GenerateArguments>();
  add_run_arguments(*command, arguments->run);
  add_precision(*command, arguments->run);
  command->get_option("run")->description(
      "Folder that `tessera train --out` filled, or transformers with a network of GPT-2's or Llama's form");
  train::GenerationOptions& options = arguments->options;
  command->add_option("--prompt", arguments->prompt, "What to go on from");
  command->add_option("--tokens", options.tokens, "How many at most")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  command
      ->add_option("--temperature", options.sampling.temperature,
                   "Above 1 bolder, below 1 surer, 0 the likeliest token")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  command
      ->add_option("--top-k", options.sampling.top_k, "Draw among the so many likeliest tokens; 0: among all")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  command
      ->add_option("--top-p", options.sampling.top_p,
                   "Draw among the likeliest tokens of together this probability")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 1.0));
  command->add_option("--seed", options.sampling.seed, "Of what is drawn")->capture_default_str();
  command->add_option("--stop", options.stops, "End before this text (may be repeated)");
  command->add_flag("--explain", arguments->explain,
                    "Print no text, but what the pass over each token is compiled to, and its nodes' times");
  command->callback([arguments] { run_generate(*arguments); });
}

const CommandRegistration kRegistration(
    {.name = "generate",
     .documentation = "Go on with a text, by a network that was trained to",
     .add = add_generate});

}  // namespace
}  // namespace tessera::cli
