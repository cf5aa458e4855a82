// Built where the writer of ONNX is.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tessera/base/error.h"
#include "tessera/base/log.h"
#include "tessera/models/registry.h"
#include "tessera/onnx/save.h"
#include "tessera/recipe/run.h"
#include "tessera/train/step.h"

#include "cli/json.h"
#include "cli/named_network.h"
#include "cli/run_options.h"

namespace tessera::cli {
namespace {

struct ExportArguments {
  RunArguments run;
  std::string checkpoint;
  std::string output;
  std::string precision = "fp32";
  bool external_data = false;

  onnx::SaveOptions options() const {
    return {.precision = parse_precision(precision), .external_data = external_data};
  }
};

// Names are of use to people alone: without the data that has them the network is written all the same.
std::vector<std::string> output_names(const train::Workload& workload) {
  if (!workload.output_names) return {};
  try {
    return workload.output_names();
  } catch (const Error& error) {
    log_warning("the outputs have no names in the model: {}", error.what());
    return {};
  }
}

void export_run(const ExportArguments& arguments) {
  const recipe::FinishedRun run =
      recipe::open_run(arguments.run.folder, overrides_of(arguments.run), arguments.checkpoint);
  onnx::SaveOptions options = arguments.options();
  options.metadata = {{"task", run.workload.task.name}, {"data", run.workload.data}};
  const std::vector<std::string> names = output_names(run.workload);
  if (!names.empty()) options.metadata["classes"] = nlohmann::json(names).dump();
  onnx::save(run.workload.task, run.trainer.checkpoint().tensors, arguments.output, options);
}

void export_untrained(const ExportArguments& arguments) {
  require(arguments.checkpoint.empty(), ErrorCode::invalid_argument,
          "--checkpoint: '{}' is a network's name and no run's folder", arguments.run.folder);
  const train::StepGraph served = train::build_served(task_of_network(arguments.run.folder));
  std::map<std::string, Tensor> weights;
  for (const nn::Variable& variable : served.variables)
    weights[variable.name] = train::starting_value(variable, 1);
  onnx::save(*served.graph, weights, arguments.output, arguments.options());
}

void export_model(const ExportArguments& arguments) {
  if (models::networks().find(arguments.run.folder) != nullptr) {
    export_untrained(arguments);
  } else {
    export_run(arguments);
  }
  fmt::print("{}\n", arguments.output);
}

void add_export(CLI::App* command) {
  command->footer(
      "Examples: tessera export runs/quickstart --output fashion.onnx\n"
      "          tessera export runs/resnet50 --checkpoint runs/resnet50/checkpoints/best.safetensors "
      "--output resnet50.onnx\n"
      "          tessera export runs/resnet50 --precision fp16 --output half.onnx\n"
      "          tessera export resnet18 --output untrained.onnx");
  auto arguments = std::make_shared<ExportArguments>();
  add_run_arguments(*command, arguments->run);
  command->get_option("run")->description(
      "Folder that `tessera train --out` filled, or a network's name: that one with starting weights, for "
      "inputs in fp32");
  command->add_option("--checkpoint", arguments->checkpoint,
                      "Weights of this checkpoint of the run, rather than those that it ended with");
  command->add_option("--output", arguments->output, "The file to write, NAME.onnx")->required();
  command
      ->add_option("--precision", arguments->precision,
                   "Type of weights, products and convolutions; inputs and outputs keep theirs")
      ->check(CLI::IsMember({"fp32", "fp16", "bf16"}))
      ->capture_default_str();
  command->add_flag("--external-data", arguments->external_data,
                    "Put large weights into a file beside the model, NAME.onnx.data; always so beyond 2 GiB");
  command->callback([arguments] { export_model(*arguments); });
}

const CommandRegistration kRegistration(
    {.name = "export",
     .documentation = "Write what a trained network serves as a model in the ONNX format",
     .add = add_export});

}  // namespace
}  // namespace tessera::cli
