#include <fmt/format.h>

#include "tessera/base/error.h"
#include "tessera/data/safetensors.h"
#include "tessera/recipe/run.h"

#include "cli/run_options.h"

namespace tessera::cli {
namespace {

struct PredictArguments {
  RunArguments run;
  std::vector<std::string> files;
  std::vector<std::string> texts;
  int64_t count = 10;
  bool all = false;
  std::string out;
};

train::PredictionSet predictions_of(const train::Workload& workload, const std::vector<std::string>& files,
                                    const std::vector<std::string>& texts) {
  if (!texts.empty()) {
    require(workload.text_predictions != nullptr, ErrorCode::invalid_argument,
            "networks of the task '{}' are not asked of texts", workload.task.name);
    return workload.text_predictions(texts);
  }
  if (!files.empty()) {
    require(workload.file_predictions != nullptr, ErrorCode::invalid_argument,
            "networks of the task '{}' are not asked of files", workload.task.name);
    return workload.file_predictions(files);
  }
  if (workload.predictions) return workload.predictions();
  return {workload.test().source, train::plain_prediction_text(workload.task.samples)};
}

void run_predict(const PredictArguments& arguments) {
  recipe::FinishedRun run = recipe::open_run(arguments.run.folder, overrides_of(arguments.run));
  const train::PredictionSet set = predictions_of(run.workload, arguments.files, arguments.texts);
  const bool all = arguments.all || !arguments.files.empty() || !arguments.texts.empty();
  const train::EvaluationLimits limits{.samples = all ? 0 : arguments.count};
  if (arguments.out.empty()) {
    const auto text = set.text();
    run.trainer.predict(
        *set.source,
        [&](const data::Batch& batch, const Feeds& outputs) { fmt::print("{}", text->tell(batch, outputs)); },
        limits);
    fmt::print("{}", text->summary());
    return;
  }
  const Feeds outputs = run.trainer.predict(*set.source, limits);
  data::write_safetensors(arguments.out, outputs);
  for (const auto& [name, tensor] : outputs)
    fmt::print("{}: {}{}\n", name, to_string(tensor.data_type()), to_string(tensor.shape()));
}

void add_predict(CLI::App* command) {
  command->footer(
      "Examples: tessera predict runs/quickstart --count 10\n"
      "          tessera predict runs/quickstart --all --out logits.safetensors\n"
      "          tessera predict runs/resnet50 photo.jpg\n"
      "          tessera predict runs/topics --text 'Of the pleasures of cooking.'");
  auto arguments = std::make_shared<PredictArguments>();
  add_run_arguments(*command, arguments->run);
  add_precision(*command, arguments->run);
  CLI::Option* files = command->add_option(
      "files", arguments->files,
      "Files of your own where the task takes any, such as JPEG, PNG or WebP, or texts; else test data");
  command
      ->add_option("--text", arguments->texts,
                   "A text of your own where the task takes any, or the next of several")
      ->excludes(files)
      ->allow_extra_args(false);
  CLI::Option* count = command->add_option("--count", arguments->count, "How many examples, the first ones")
                           ->capture_default_str()
                           ->check(CLI::PositiveNumber);
  command->add_flag("--all", arguments->all, "All examples")->excludes(count);
  command->add_option("--out", arguments->out,
                      "Write what the network serves, by name, to this safetensors file, and tell nothing");
  command->callback([arguments] { run_predict(*arguments); });
}

const CommandRegistration kRegistration({.name = "predict",
                                         .documentation = "Show what a trained network says of test data",
                                         .add = add_predict});

}  // namespace
}  // namespace tessera::cli
