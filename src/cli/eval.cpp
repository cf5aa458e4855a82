#include <cstdio>

#include <fmt/format.h>

#include "tessera/base/error.h"
#include "tessera/distribute/exchange.h"
#include "tessera/distribute/registry.h"
#include "tessera/recipe/follow.h"
#include "tessera/recipe/run.h"
#include "tessera/report/summary.h"

#include "cli/commands.h"
#include "cli/json.h"
#include "cli/ranks.h"
#include "cli/run_options.h"

namespace tessera::cli {
namespace {

struct EvalArguments {
  RunArguments run;
  int64_t count = 0;
  int64_t devices = 1;
  bool follow = false;
  bool json = false;
};

// As the environment of a launcher says, if there is one: the first of several ranks tells what all have
// seen.
void evaluate(const EvalArguments& arguments, const std::shared_ptr<Communicator>& communicator) {
  recipe::FinishedRun run =
      recipe::open_run(arguments.run.folder, overrides_of(arguments.run), {}, communicator);
  const train::TestSet test = run.workload.test();
  const auto evaluator = test.evaluator();
  const int64_t samples = run.trainer.evaluate(*test.source, *evaluator, {.samples = arguments.count});
  const nn::Task& task = run.trainer.task();
  if (communicator != nullptr && communicator->rank() != 0) return;
  if (arguments.json) {
    nlohmann::json object = evaluator->results();
    object[task.samples] = samples;
    fmt::print("{}\n", dump_json(object));
  } else {
    fmt::print("{} {}: {}\n", samples, task.samples,
               report::describe_results(task.metrics, evaluator->results()));
  }
}

// As weights are evaluated, a line each.
void print_evaluation(const EvalArguments& arguments, const nn::Task& task, const train::EvaluationRow& row) {
  if (arguments.json) {
    nlohmann::json object = row.results;
    object["epoch"] = row.epoch;
    object["step"] = row.step;
    fmt::print("{}\n", dump_json(object));
  } else {
    fmt::print("epoch {:g}, step {}: {}\n", row.epoch, row.step,
               report::describe_results(task.metrics, row.results));
  }
  std::fflush(stdout);
}

void follow(const EvalArguments& arguments) {
  require(distribute::connect_by_environment() == nullptr, ErrorCode::invalid_argument,
          "--follow: one process evaluates what several train");
  install_stop_handler();
  const bool ended =
      recipe::follow_run({.folder = arguments.run.folder,
                          .overrides = overrides_of(arguments.run),
                          .stop = &stop_flag(),
                          .on_evaluation = [&](const nn::Task& task, const train::EvaluationRow& row) {
                            print_evaluation(arguments, task, row);
                          }});
  if (!ended) throw Interrupted{};
}

void run_eval(const EvalArguments& arguments) {
  if (arguments.follow) return follow(arguments);
  const std::shared_ptr<Communicator> communicator = distribute::connect_by_environment();
  if (communicator == nullptr && arguments.devices > 1)
    return run_on_ranks({.ranks = arguments.devices}, own_arguments());  // each of which comes here again
  try {
    evaluate(arguments, communicator);
  } catch (const std::exception& error) {
    distribute::end_all_ranks(communicator.get(), error);
    throw;
  }
}

void add_eval(CLI::App* command) {
  command->footer(
      "Examples:\n"
      "  tessera eval runs/quickstart\n"
      "  tessera eval runs/beside --follow  # while `tessera train ... --set train.evaluate_beside=true` "
      "trains there");
  auto arguments = std::make_shared<EvalArguments>();
  add_run_arguments(*command, arguments->run);
  add_precision(*command, arguments->run);
  CLI::Option* const count =
      command->add_option("--count", arguments->count, "The first so many examples; all unless given")
          ->check(CLI::PositiveNumber);
  CLI::Option* const devices =
      command
          ->add_option(
              "--devices", arguments->devices,
              "By so many processes of this machine, each with a GPU of its own where there are enough")
          ->check(CLI::Range(1, 256));
  command
      ->add_flag("--follow", arguments->follow,
                 "Evaluate the weights that a run with train.evaluate_beside leaves on its way, as they "
                 "come, until it "
                 "has ended")
      ->excludes(count)
      ->excludes(devices);
  command->add_flag("--json", arguments->json,
                    "Print how many samples there are and each result by its name");
  command->callback([arguments] { run_eval(*arguments); });
}

const CommandRegistration kRegistration({.name = "eval",
                                         .documentation = "Measure a trained network on its test data",
                                         .add = add_eval});

}  // namespace
}  // namespace tessera::cli
