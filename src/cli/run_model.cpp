#include <algorithm>
#include <numeric>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tessera/base/file.h"
#include "tessera/data/npy.h"

#include "cli/commands.h"
#include "cli/data_inputs.h"
#include "cli/runnable_file.h"

namespace tessera::cli {
namespace {

using program::Item;

struct RunModelArguments {
  std::string model;
  GivenInputs inputs = {};
  std::string output_folder;
  RunnableOptions file = {};
  size_t top = 0;
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

// Of each row along the last axis the largest, with their places: the likeliest classes.
void tell_largest(const Tensor& tensor, size_t count) {
  const auto columns = static_cast<size_t>(tensor.shape().back());
  const std::vector<double> numbers = tensor.to_doubles();
  std::vector<size_t> order(columns);
  for (size_t row = 0; row < numbers.size(); row += columns) {
    std::iota(order.begin(), order.end(), row);
    const auto end = order.begin() + static_cast<std::ptrdiff_t>(std::min(count, columns));
    std::partial_sort(order.begin(), end, order.end(),
                      [&](size_t a, size_t b) { return numbers[a] > numbers[b]; });
    std::vector<std::string> largest;
    for (auto place = order.begin(); place != end; ++place)
      largest.push_back(fmt::format("{}: {:.6g}", *place - row, numbers[*place]));
    fmt::print("  {}\n", fmt::join(largest, ", "));
  }
}

// Numbers where they are few, or where the largest are asked for.
void tell_numbers(const Tensor& tensor, size_t top) {
  constexpr int64_t kFew = 12;
  if (is_complex(tensor.data_type()) || tensor.size() == 0) return;
  if (top > 0 && !tensor.shape().empty()) {
    tell_largest(tensor, top);
  } else if (tensor.size() <= kFew) {
    std::vector<std::string> numbers;
    for (const double number : tensor.to_doubles()) numbers.push_back(fmt::format("{:.6g}", number));
    fmt::print("  {}\n", fmt::join(numbers, ", "));
  }
}

void tell_outputs(const std::map<std::string, Item>& outputs, const RunModelArguments& arguments) {
  const std::string& folder = arguments.output_folder;
  if (!folder.empty()) make_folder(folder);
  for (const auto& [name, item] : outputs) {
    fmt::print("{}: {}\n", name, to_string(item));
    if (item.tensor() != nullptr) tell_numbers(*item.tensor(), arguments.top);
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
  const std::unique_ptr<RunnableFile> file = format_of(arguments.model).open(arguments.model, arguments.file);
  if (arguments.inputs.files.empty() && !file->inputs().empty()) {
    tell_declarations("inputs", file->inputs());
    tell_declarations("outputs", file->outputs());
    return;
  }
  tell_outputs(file->run(read_inputs(arguments.inputs, file->inputs())), arguments);
  if (arguments.explain) file->explain();
}

void add_run(CLI::App* command) {
  command->footer(
      "Examples: tessera run model.onnx\n"
      "          tessera run model.onnx --input x=x.npy --output-folder out\n"
      "          tessera run model.onnx --input x=cat.jpg --mean 0.485,0.456,0.406 "
      "--deviation 0.229,0.224,0.225 --top 5\n"
      "          tessera run model.onnx --input x=x.json --precision fp16 --explain\n"
      "          tessera run model.plan --input x=x.npy");
  auto arguments = std::make_shared<RunModelArguments>();
  command
      ->add_option("model", arguments->model,
                   "A network in the ONNX format, or a plan that `tessera build` wrote")
      ->required();
  add_inputs(*command, arguments->inputs);
  command->add_option("--top", arguments->top,
                      "Print the N largest numbers along the last axis, with their places");
  command->add_option("--output-folder", arguments->output_folder, "Write each output there, as NAME.npy");
  command->add_option("--device", arguments->file.device,
                      "Where it runs: cpu, cuda, reference; cpu unless said, and of a plan its own");
  command->add_option("--precision", arguments->file.precision,
                      "fp32, tf32, bf16 or fp16; a plan has its own");
  command->add_flag("--explain", arguments->explain,
                    "List the static graphs that it was cut into, and why each ended; of a plan what it is");
  command->callback([arguments] { run_model(*arguments); });
}

const CommandRegistration kRegistration(
    {.name = "run", .documentation = "Run a network in a file, on arrays, pictures or JSON", .add = add_run});

}  // namespace

Registry<RunnableFormat>& runnable_formats() {
  static Registry<RunnableFormat> formats("format of networks to run");
  return formats;
}

}  // namespace tessera::cli
