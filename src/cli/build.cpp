#include <memory>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tessera/base/error.h"
#include "tessera/base/progress.h"
#include "tessera/base/text.h"
#include "tessera/infer/plan_builder.h"

#include "cli/plan_subject.h"
#include "cli/subject.h"

namespace tessera::cli {
namespace {

struct BuildArguments {
  ModelArguments model;
  std::vector<int64_t> batches = {1};
  std::string output;
};

// All sizes, in one workspace; bound to the same variables where the device executes.
std::vector<CompiledModel> compile_sizes(const BuildArguments& arguments) {
  std::vector<CompiledModel> sizes;
  std::shared_ptr<Variables> variables;
  for (const int64_t batch : arguments.batches) {
    ModelArguments one = arguments.model;
    one.batch = batch;
    one.batch_given = true;
    const std::shared_ptr<Workspace> shared = sizes.empty() ? nullptr : sizes.front().executable->workspace();
    CompiledModel compiled = open_subject(one)->compile(train::StepKind::updating, shared);
    if (compiled.device->executes()) {
      if (variables == nullptr) variables = std::make_shared<Variables>(compiled.device);
      for (const auto& input : compiled.executable->graph().inputs()) {
        const bool is_made = input->role() == InputRole::input || input->initial() != nullptr;
        if (!is_made && !variables->contains(input->name()))
          variables->set(input->name(), starting_value(compiled, input->name()));
      }
      compiled.executable->bind(variables);
    }
    sizes.push_back(std::move(compiled));
  }
  return sizes;
}

void build(const BuildArguments& arguments) {
  const std::string& model = arguments.model.model;
  require(!is_plan_file(model), ErrorCode::invalid_argument, "'{}' is a plan already", model);
  const LongWork building;
  const Clock::time_point begin = Clock::now();
  const std::vector<CompiledModel> sizes = compile_sizes(arguments);
  const DeviceDescription device = sizes.front().device->description();
  infer::PlanBuilder builder(std::filesystem::path(model).filename().string(), device,
                             compile_options_of(arguments.model));
  for (const CompiledModel& size : sizes) {
    builder.add(size.batch, *size.executable,
                [&](const std::string& name) { return starting_value(size, name); });
  }
  builder.write(arguments.output);
  std::vector<int64_t> batches;
  for (const infer::PlanSize& size : builder.description().sizes) batches.push_back(size.batch);
  fmt::print("{}\n{}: batch {}, {}, weights {}; built in {:.2f} s\n",
             device_summary(device, sizes.front().fallback), arguments.output, fmt::join(batches, ", "),
             arguments.model.precision, format_bytes(static_cast<double>(builder.weight_bytes())),
             seconds_since(begin));
}

void add_build(CLI::App* command) {
  command->footer(
      "Examples:\n"
      "  tessera build resnet50.onnx --batch 1,8,32 --tune --output resnet50.plan\n"
      "  tessera bench resnet50.plan --batch 8\n"
      "  tessera run resnet50.plan --input x=x.npy --output-folder out\n"
      "A network by name or a recipe is built with its starting weights; for trained ones see `export`.");
  auto arguments = std::make_shared<BuildArguments>();
  add_network_arguments(*command, arguments->model);
  command
      ->add_option("--batch", arguments->batches,
                   "Batch sizes, as 1,8,32: a request runs at the smallest that takes it")
      ->capture_default_str()
      ->delimiter(',')
      ->check(CLI::PositiveNumber);
  command->add_option("-o,--output", arguments->output, "The file to write, NAME.plan")->required();
  command->callback([arguments] { build(*arguments); });
}

const CommandRegistration kRegistration(
    {.name = "build",
     .documentation = "Compile a network for this device and write it as a plan, which loads at once",
     .add = add_build});

}  // namespace
}  // namespace tessera::cli
