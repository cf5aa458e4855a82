// Built where the reader of ONNX is.
#include <fmt/format.h>

#include "tessera/base/file.h"
#include "tessera/data/npy.h"
#include "tessera/onnx/onnx.h"
#include "tessera/program/runner.h"

#include "cli/commands.h"
#include "cli/given_inputs.h"

namespace tessera::cli {
namespace {

using program::Item;

struct RunModelArguments {
  std::string model;
  std::vector<std::string> inputs;  // NAME=FILE
  std::string output_folder;
  std::string device = "cpu";
  bool explain = false;
};

void tell_declarations(const char* title, const std::vector<program::Declaration>& declarations) {
  fmt::print("{}:\n", title);
  for (const program::Declaration& declaration : declarations)
    fmt::print("  {}: {}\n", declaration.name, declaration.type);
}

// Names of files: what is a folder's in a name of a value would leave the output folder.
std::string file_name_of(const std::string& output) {
  std::string name = output;
  for (char& c : name) {
    if (c == '/' || c == '\0') c = '_';
  }
  return name + ".npy";
}

void tell_outputs(const std::map<std::string, Item>& outputs, const std::string& folder) {
  if (!folder.empty()) make_folder(folder);
  for (const auto& [name, item] : outputs) {
    fmt::print("{}: {}\n", name, to_string(item));
    if (item.text() != nullptr) {
      for (const std::string& text : item.text()->values) fmt::print("  {}\n", text);
    }
    if (!folder.empty() && item.tensor() != nullptr)
      data::write_npy(std::filesystem::path(folder) / file_name_of(name), *item.tensor());
  }
}

void tell_islands(const program::Runner& runner) {
  for (const program::IslandReport& island : runner.islands()) {
    fmt::print("island of '{}': instructions {} to {} on {}, {} nodes; {}\n", island.block, island.first,
               island.end - 1, island.device.empty() ? "no device" : island.device, island.nodes, island.why);
  }
}

void run_model(const RunModelArguments& arguments) {
  program::Runner runner(onnx::load(arguments.model), {.devices = {Device::open(arguments.device)}});
  if (arguments.inputs.empty() && !runner.module().main->inputs.empty()) {
    tell_declarations("inputs", runner.module().main->inputs);
    tell_declarations("outputs", runner.module().main->outputs);
    return;
  }
  const std::map<std::string, Tensor> inputs = read_inputs(arguments.inputs);
  tell_outputs(runner.run({inputs.begin(), inputs.end()}), arguments.output_folder);
  if (arguments.explain) tell_islands(runner);
}

void add_run(CLI::App* command) {
  command->footer(
      "Examples: tessera run model.onnx\n"
      "          tessera run model.onnx --input x=x.npy --output-folder out\n"
      "          tessera run model.onnx --input x=x.npy --explain");
  auto arguments = std::make_shared<RunModelArguments>();
  command->add_option("model", arguments->model, "A network in the ONNX format")->required();
  command->add_option(
      "--input", arguments->inputs,
      "NAME=FILE: the contents of an input, as a .npy file; without any the inputs are listed");
  command->add_option("--output-folder", arguments->output_folder, "Write each output there, as NAME.npy");
  command->add_option("--device", arguments->device, "Where it runs: cpu, cuda, reference")
      ->capture_default_str();
  command->add_flag("--explain", arguments->explain,
                    "List the static graphs that it was cut into, and why each ended");
  command->callback([arguments] { run_model(*arguments); });
}

const CommandRegistration kRegistration({.name = "run",
                                         .documentation = "Run a network in the ONNX format",
                                         .add = add_run});

}  // namespace
}  // namespace tessera::cli
