#include <cstdio>
#include <string_view>

#include <fmt/format.h>

#include "tessera/base/error.h"
#include "tessera/distribute/rank_output.h"
#include "tessera/distribute/registry.h"
#include "tessera/recipe/run.h"
#include "tessera/report/summary.h"

#include "cli/commands.h"

namespace tessera::cli {
namespace {

struct TrainArguments {
  std::string recipe;
  std::vector<std::string> overrides;
  std::string device;
  std::string network;
  recipe::RunOptions run;
  std::string folder;
};

// As a shell reads it as one word.
std::string quoted(const std::string& word) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:=,+@%";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) return word;
  std::string result = "'";
  for (const char c : word) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

void tell_how_to_go_on(const std::string& folder, const train::Position& position, int64_t ranks) {
  const std::string text = fmt::format(
      "stopped after step {} (epoch {}, batch {}); everything is saved. Go on with:\n  {} train {} --out {} "
      "--resume\n",
      position.step, position.epoch + 1, position.batch, distribute::program_on_ranks(ranks),
      quoted((std::filesystem::path(folder) / "recipe.toml").string()), quoted(folder));
  // Where nobody listens any more, which may be why the run was stopped, it is saved all the same.
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

// runs/NAME of the recipe NAME.toml; of a run's own recipe, where the run is.
std::string default_folder(const std::filesystem::path& recipe) {
  if (recipe.filename() != "recipe.toml") return (std::filesystem::path("runs") / recipe.stem()).string();
  return recipe.has_parent_path() ? recipe.parent_path().string() : ".";
}

// As the environment of a launcher says, if there is one.
void join_ranks(recipe::RunOptions& run) {
  if (distribute::is_restarted())
    run.resume |= std::filesystem::exists(run.folder / "checkpoints" / "last.safetensors");
  run.communicator = distribute::connect_by_environment();
  if (run.communicator == nullptr) return;
  run.on_begin = [folder = run.folder, rank = run.communicator->rank()] {
    distribute::open_rank_log(folder, rank);
  };
}

void run_train(TrainArguments& arguments) {
  if (!arguments.device.empty()) arguments.overrides.push_back("train.device=" + arguments.device);
  if (arguments.network.find('.') != std::string::npos) {
    arguments.overrides.insert(arguments.overrides.end(),
                               {"model.name=file", "model.file=" + arguments.network});
  } else if (!arguments.network.empty()) {
    arguments.overrides.push_back("model.name=" + arguments.network);
  }
  const recipe::Recipe recipe = recipe::load_recipe(arguments.recipe, arguments.overrides);
  if (arguments.folder.empty()) arguments.folder = default_folder(arguments.recipe);
  install_stop_handler();
  arguments.run.folder = arguments.folder;
  arguments.run.stop = &stop_flag();
  arguments.run.asked = recipe::overridden_keys(arguments.overrides);
  join_ranks(arguments.run);
  const recipe::RunResult result = recipe::run_recipe(recipe, arguments.run);
  Communicator* const communicator = arguments.run.communicator.get();
  const bool tells = communicator == nullptr || communicator->rank() == 0;
  const int64_t ranks = communicator == nullptr ? 1 : communicator->size();
  if (result.fit.completed) {
    if (!tells) return;
    for (const train::EvaluationRow& row : result.last_evaluations())
      fmt::print("{} {}; ", row.name, report::describe_results(result.task.metrics, row.results));
    if (recipe.values.boolean("train.evaluate_beside"))
      fmt::print("evaluated by `tessera eval {} --follow`; ", arguments.folder);
    fmt::print("results in {}\n", arguments.folder);
    return;
  }
  if (tells) tell_how_to_go_on(arguments.folder, result.fit.position, ranks);
  // Some launchers end all ranks when one of them ends so.
  if (communicator != nullptr) communicator->barrier();
  if (stop_flag().load()) throw Interrupted{};
}

void add_train(CLI::App* command) {
  command->footer(
      "A recipe is a TOML file: see recipes/ and docs/recipes.md. Examples:\n"
      "  tessera train recipes/quickstart.toml\n"
      "  tessera train recipes/resnet18.toml --out runs/second --set train.epochs=3 --set "
      "optimizer.name=lars\n"
      "Ctrl-C finishes the step, saves, and says how to go on; so does a session that ends.");
  auto arguments = std::make_shared<TrainArguments>();
  command->add_option("recipe", arguments->recipe, "The recipe")->required();
  command->add_option("--out", arguments->folder,
                      "Folder for checkpoints, events, summary and report (default: runs/NAME for the recipe "
                      "NAME.toml, the run's folder for a run's recipe.toml)");
  command
      ->add_option("--set", arguments->overrides,
                   "Change a value of the recipe: --set train.epochs=3 (may be repeated)")
      ->allow_extra_args(false);
  command->add_option("--device", arguments->device,
                      "auto, cpu, cuda, cuda:1 or reference; the same as --set train.device=...");
  command->add_option("--network", arguments->network,
                      "The network, by name or in a file, NAME.onnx, with the weights that it has there; the "
                      "same as --set model.name=... or --set model.name=file --set model.file=NAME.onnx");
  command
      ->add_option("--max-steps", arguments->run.max_steps, "Stop, resumable, after so many updates in all")
      ->check(CLI::PositiveNumber);
  command->add_flag("--resume", arguments->run.resume, "Go on from the folder's last checkpoint");
  command->add_flag("--quiet", arguments->run.quiet, "No progress line");
  command->callback([arguments] { run_train(*arguments); });
}

const CommandRegistration kRegistration({.name = "train",
                                         .documentation = "Train a network as a recipe says",
                                         .add = add_train});

}  // namespace
}  // namespace tessera::cli
