#include <fmt/format.h>

#include "tessera/train/run.h"

#include "cli/json.h"
#include "cli/run_options.h"

namespace tessera::cli {

void add_eval(CLI::App& program) {
  CLI::App* command = program.add_subcommand("eval", "Measure a trained network on its test images");
  command->footer("Example: tessera eval runs/quickstart");
  auto arguments = std::make_shared<RunArguments>();
  auto json = std::make_shared<bool>(false);
  add_run_arguments(*command, *arguments);
  command->add_flag("--json", *json, "Print {\"images\", \"loss\", \"accuracy\"}");
  command->callback([arguments, json] {
    train::FinishedRun run = train::open_run(arguments->folder, overrides_of(*arguments));
    const data::Loader loader = train::make_evaluation_loader(run.recipe, data::Split::test);
    const train::Evaluation evaluation = run.trainer.evaluate(loader);
    if (*json) {
      const nlohmann::json result = {{"images", evaluation.predictions.size()},
                                     {"loss", evaluation.loss},
                                     {"accuracy", evaluation.accuracy}};
      fmt::print("{}\n", dump_json(result));
    } else {
      fmt::print("{} images: accuracy {:.2f} %, loss {:.4f}\n", evaluation.predictions.size(),
                 100 * evaluation.accuracy, evaluation.loss);
    }
  });
}

}  // namespace tessera::cli
