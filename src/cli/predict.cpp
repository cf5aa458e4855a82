#include <fmt/format.h>

#include "tessera/recipe/run.h"

#include "cli/run_options.h"

namespace tessera::cli {
namespace {

void run_predict(const RunArguments& arguments, int64_t count) {
  std::vector<std::string> overrides = overrides_of(arguments);
  overrides.push_back(fmt::format("data.test_images={}", count));
  recipe::FinishedRun run = recipe::open_run(arguments.folder, overrides);
  const train::TestSet test = run.workload.test();
  const auto evaluator = test.evaluator();
  run.trainer.evaluate(*test.source, *evaluator);
  fmt::print("{}", evaluator->examples());
}

void add_predict(CLI::App* command) {
  command->footer("Example: tessera predict runs/quickstart --count 10");
  auto arguments = std::make_shared<RunArguments>();
  auto count = std::make_shared<int64_t>(10);
  add_run_arguments(*command, *arguments);
  command->add_option("--count", *count, "How many examples")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  command->callback([arguments, count] { run_predict(*arguments, *count); });
}

const CommandRegistration kRegistration({.name = "predict",
                                         .documentation = "Show what a trained network says of test data",
                                         .add = add_predict});

}  // namespace
}  // namespace tessera::cli
