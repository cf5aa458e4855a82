#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "tessera/base/error.h"
#include "tessera/recipe/run.h"

#include "cli/run_options.h"

namespace tessera::cli {
namespace {

struct TranslateArguments {
  RunArguments run;
  std::vector<std::string> texts;
  train::SearchWishes wishes;
};

// A text a line.
std::vector<std::string> lines_of(std::istream& stream) {
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

void run_translate(const TranslateArguments& arguments) {
  recipe::FinishedRun run = recipe::open_run(arguments.run.folder, overrides_of(arguments.run));
  require(run.workload.translation != nullptr, ErrorCode::invalid_argument,
          "networks of the task '{}' do not translate", run.workload.task.name);
  const std::vector<std::string> texts = arguments.texts.empty() ? lines_of(std::cin) : arguments.texts;
  const auto serve = [&](const nn::Task& task) { return run.trainer.serve(task); };
  for (const std::string& line : run.workload.translation(serve, arguments.wishes, texts))
    fmt::print("{}\n", line);
}

void add_translate(CLI::App* command) {
  command->footer(
      "Examples: tessera translate runs/messages --text 'Could not open the file.'\n"
      "          tessera translate runs/messages --beams 8 <messages.en >messages.de");
  auto arguments = std::make_shared<TranslateArguments>();
  add_run_arguments(*command, arguments->run);
  add_precision(*command, arguments->run);
  command->add_option("--text", arguments->texts,
                      "A text to translate (may be repeated); without any, each line that is read");
  command
      ->add_option("--beams", arguments->wishes.beams,
                   "Translations that are followed at once, 1: always the likeliest token; as the run was "
                   "evaluated unless given")
      ->check(CLI::Range(1, 64));
  command
      ->add_option("--length-penalty", arguments->wishes.length_penalty,
                   "Scores are divided by the length to this power; as the run was evaluated unless given")
      ->check(CLI::Range(-10.0, 10.0));
  command->callback([arguments] { run_translate(*arguments); });
}

const CommandRegistration kRegistration({.name = "translate",
                                         .documentation = "Translate texts, by a network that was trained to",
                                         .add = add_translate});

}  // namespace
}  // namespace tessera::cli
