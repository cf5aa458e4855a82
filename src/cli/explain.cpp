#include <algorithm>

#include <fmt/format.h>

#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/compile/dot.h"

#include "cli/data_inputs.h"
#include "cli/explanation.h"
#include "cli/network_file.h"
#include "cli/subject.h"

namespace tessera::cli {
namespace {

struct ExplainArguments {
  ModelArguments model;
  bool json = false;
  bool dot = false;
  bool text = false;
  bool times = false;
  std::vector<int64_t> beside = {};  // batches, in the same workspace
  std::vector<std::string> inputs;   // NAME=FILE, of a network in a file
};

std::vector<NetworkPart> parts_of(const ExplainArguments& arguments) {
  const ModelArguments& model = arguments.model;
  const NetworkFormat* format = network_format_of(model.model);
  const bool may_have_parts = format != nullptr && format->parts;
  require(may_have_parts || arguments.inputs.empty(), ErrorCode::invalid_argument,
          "--input is of a network in a file, NAME.onnx, and '{}' is none", model.model);
  if (!may_have_parts || model.train) return {};
  return format->parts(model.model, {.batch = model.batch, .others = model.sizes},
                       read_arrays(arguments.inputs));
}

// Each compiled by itself for the device; which they are was found on the processor.
void explain_parts(const ExplainArguments& arguments, const std::vector<NetworkPart>& parts) {
  const ModelArguments& model = arguments.model;
  require(!arguments.dot && !arguments.text && !arguments.times && arguments.beside.empty(),
          ErrorCode::invalid_argument,
          "--dot, --text, --times and --beside are of one graph, and '{}' is cut into {} parts", model.model,
          parts.size());
  std::string fallback;
  const std::shared_ptr<Device> device = Device::open(model.device, &fallback);
  auto json = nlohmann::json::array();
  for (const NetworkPart& part : parts) {
    json.push_back({{"place", part.place}, {"runs", part.runs}, {"ends", part.why}});
    if (!arguments.json) {
      fmt::print("{}Part {} of {}: {}, {} {}; {}\n", json.size() == 1 ? "" : "\n", json.size(), parts.size(),
                 part.place, part.runs, part.runs == 1 ? "run" : "runs", part.why);
    }
    if (part.graph == nullptr) {
      json.back()["done"] = part.done;
      if (!arguments.json) fmt::print("{}\n", part.done);
      continue;
    }
    const auto executable = compile(*part.graph, device, compile_options_of(model));
    const Explanation explained{.executable = *executable,
                                .device = device->description(),
                                .fallback = fallback,
                                .times = {},
                                .batches = {model.batch}};
    json.back()["plan"] = to_json(explained);
    if (!arguments.json) print_text(explained);
  }
  if (arguments.json) fmt::print("{}\n", dump_json({{"parts", std::move(json)}}, 1));
}

void explain(const ExplainArguments& arguments) {
  const std::unique_ptr<Subject> subject = open_subject(arguments.model);
  const std::vector<NetworkPart> parts = parts_of(arguments);
  if (!parts.empty()) return explain_parts(arguments, parts);
  const CompiledModel compiled = subject->compile();
  if (arguments.dot) {
    fmt::print("{}", to_dot(compiled.executable->graph()));
    return;
  }
  if (arguments.text) {
    fmt::print("{}", print(compiled.executable->graph()));
    return;
  }
  Explanation explained{.executable = *compiled.executable,
                        .device = compiled.device->description(),
                        .fallback = compiled.fallback,
                        .times = {},
                        .batches = {compiled.batch}};
  std::vector<CompiledModel> others;
  for (const int64_t batch : arguments.beside) {
    ModelArguments other = arguments.model;
    other.batch = batch;
    other.batch_given = true;
    others.push_back(
        open_subject(other)->compile(train::StepKind::updating, compiled.executable->workspace()));
    explained.batches.push_back(batch);
  }
  if (arguments.times) {
    make_ready(*subject, compiled);
    explained.times = compiled.executable->profile({});
  }
  if (arguments.json) {
    fmt::print("{}\n", dump_json(to_json(explained), 1));
  } else {
    print_text(explained);
  }
}

void add_explain(CLI::App* command) {
  command->footer(
      "Examples:\n"
      "  tessera explain resnet50 --train --times\n"
      "  tessera explain resnet50 --train --batch 256 --precision fp16 --device cuda:plan-h100\n"
      "  tessera explain resnet50 --batch 64 --beside 1,8,16 --device cuda:plan-h100\n"
      "  tessera explain recipes/gan.toml --train --phase generator\n"
      "  tessera explain model.onnx --size length=128 --input mask=mask.npy\n"
      "  tessera explain lenet --dot | dot -Tsvg > lenet.svg\n"
      "A node's limit is the least time in which the hardware could move its bytes and do its flops; it is\n"
      "known for GPUs, and --times says what share of it each node reached.");
  auto arguments = std::make_shared<ExplainArguments>();
  add_model_arguments(*command, arguments->model);
  command->add_flag("--json", arguments->json, "Print nodes, candidates and memory as JSON");
  command->add_flag("--dot", arguments->dot, "Print the compiled graph for Graphviz");
  command->add_flag("--text", arguments->text, "Print the compiled graph as text");
  command
      ->add_option(
          "--ranks", arguments->model.ranks.count,
          "Plan the step of one of so many ranks, for a GPU that is not there; the batch is one rank's")
      ->check(CLI::Range(1, 1 << 20));
  command
      ->add_option("--beside", arguments->beside,
                   "Further batch sizes, as 1,8,64: what their executables need in the same workspace")
      ->delimiter(',')
      ->check(CLI::PositiveNumber);
  command
      ->add_option("--input", arguments->inputs,
                   "Of a network in a file: NAME=FILE, the contents of an input, as a .npy file, or a .npz "
                   "file of several (may be repeated): where contents decide into what it is cut")
      ->allow_extra_args(false);
  command->add_flag("--times", arguments->times,
                    "Run it, and add each node's time, rates and share of its limit");
  command->callback([arguments] { explain(*arguments); });
}

const CommandRegistration kRegistration(
    {.name = "explain",
     .documentation =
         "Show what the compiler makes of a network: passes, nodes, candidate kernels, memory plan",
     .add = add_explain});

}  // namespace
}  // namespace tessera::cli
