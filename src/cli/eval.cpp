#include <fmt/format.h>

#include "tessera/recipe/run.h"
#include "tessera/report/summary.h"

#include "cli/json.h"
#include "cli/run_options.h"

namespace tessera::cli {
namespace {

void run_eval(const RunArguments& arguments, int64_t count, bool json) {
  recipe::FinishedRun run = recipe::open_run(arguments.folder, overrides_of(arguments));
  const train::TestSet test = run.workload.test();
  const auto evaluator = test.evaluator();
  const int64_t samples = run.trainer.evaluate(*test.source, *evaluator, {.samples = count});
  const nn::Task& task = run.trainer.task();
  if (json) {
    nlohmann::json object = evaluator->results();
    object[task.samples] = samples;
    fmt::print("{}\n", dump_json(object));
  } else {
    fmt::print("{} {}: {}\n", samples, task.samples,
               report::describe_results(task.metrics, evaluator->results()));
  }
}

void add_eval(CLI::App* command) {
  command->footer("Example: tessera eval runs/quickstart");
  auto arguments = std::make_shared<RunArguments>();
  auto count = std::make_shared<int64_t>(0);
  auto json = std::make_shared<bool>(false);
  add_run_arguments(*command, *arguments);
  command->add_option("--count", *count, "The first so many examples; all unless given")
      ->check(CLI::PositiveNumber);
  command->add_flag("--json", *json, "Print how many samples there are and each result by its name");
  command->callback([arguments, count, json] { run_eval(*arguments, *count, *json); });
}

const CommandRegistration kRegistration({.name = "eval",
                                         .documentation = "Measure a trained network on its test data",
                                         .add = add_eval});

}  // namespace
}  // namespace tessera::cli
