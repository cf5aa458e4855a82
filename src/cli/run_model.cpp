#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tessera/base/file.h"
#include "tessera/data/npy.h"

#include "cli/commands.h"
#include "cli/given_inputs.h"
#include "cli/runnable_file.h"

namespace tessera::cli {
namespace {

using program::Item;

struct RunModelArguments {
  std::string model;
  std::vector<std::string> inputs;  // NAME=FILE
  std::string output_folder;
  std::string device;
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

// By the end of its name; what ends otherwise is taken for ONNX, where that is read.
const RunnableFormat& format_of(const std::string& model) {
  for (const RunnableFormat* format : runnable_formats().all()) {
    if (model.ends_with(format->name)) return *format;
  }
  const RunnableFormat* onnx = runnable_formats().find(".onnx");
  require(onnx != nullptr, ErrorCode::unsupported, "'{}' is no file that this program runs: {}", model,
          fmt::join(runnable_formats().names(), ", "));
  return *onnx;
}

void run_model(const RunModelArguments& arguments) {
  const std::unique_ptr<RunnableFile> file =
      format_of(arguments.model).open(arguments.model, arguments.device);
  if (arguments.inputs.empty() && !file->inputs().empty()) {
    tell_declarations("inputs", file->inputs());
    tell_declarations("outputs", file->outputs());
    return;
  }
  const std::map<std::string, Tensor> inputs = read_inputs(arguments.inputs);
  tell_outputs(file->run({inputs.begin(), inputs.end()}), arguments.output_folder);
  if (arguments.explain) file->explain();
}

void add_run(CLI::App* command) {
  command->footer(
      "Examples: tessera run model.onnx\n"
      "          tessera run model.onnx --input x=x.npy --output-folder out\n"
      "          tessera run model.onnx --input x=x.npy --explain\n"
      "          tessera run model.plan --input x=x.npy");
  auto arguments = std::make_shared<RunModelArguments>();
  command
      ->add_option("model", arguments->model,
                   "A network in the ONNX format, or a plan that `tessera build` wrote")
      ->required();
  command->add_option(
      "--input", arguments->inputs,
      "NAME=FILE: the contents of an input, as a .npy file, or a .npz file with arrays called as the inputs; "
      "without any the inputs are listed");
  command->add_option("--output-folder", arguments->output_folder, "Write each output there, as NAME.npy");
  command->add_option("--device", arguments->device,
                      "Where it runs: cpu, cuda, reference; cpu unless said, and of a plan its own");
  command->add_flag("--explain", arguments->explain,
                    "List the static graphs that it was cut into, and why each ended; of a plan what it is");
  command->callback([arguments] { run_model(*arguments); });
}

const CommandRegistration kRegistration({.name = "run",
                                         .documentation = "Run a network in a file, on .npy files",
                                         .add = add_run});

}  // namespace

Registry<RunnableFormat>& runnable_formats() {
  static Registry<RunnableFormat> formats("format of networks to run");
  return formats;
}

}  // namespace tessera::cli
