#include "cli/model_options.h"

#include <algorithm>

#include "tessera/base/error.h"
#include "tessera/base/random.h"
#include "tessera/base/text.h"
#include "tessera/distribute/exchange.h"
#include "tessera/distribute/registry.h"
#include "tessera/models/registry.h"
#include "tessera/tasks/image_classification.h"
#include "tessera/train/checkpoint.h"

#include "cli/network_file.h"

namespace tessera::cli {
namespace {

std::map<std::string, Tensor> synthetic_inputs(const Graph& graph, int64_t classes) {
  return make_inputs(graph, [&](const Value& input, Tensor& tensor) {
    const Random random(1, hash_name(input.name().data(), input.name().size()));
    for (int64_t i = 0; i < tensor.size(); ++i) {
      const auto index = static_cast<uint64_t>(i);
      if (input.name() == "learning_rate") {
        tensor.set(i, kLearningRate);
      } else if (is_floating(input.data_type())) {
        tensor.set(i, random.normal(index));
      } else {
        tensor.set(i, static_cast<double>(random.below(index, static_cast<uint64_t>(classes))));
      }
    }
  });
}

// Planning needs no values; running does.
void check_has_weights(const CompiledModel& compiled, const std::string& file) {
  for (const auto& input : compiled.step.graph->inputs()) {
    require(input->role() == InputRole::input || compiled.weights.contains(input->name()),
            ErrorCode::invalid_argument, "{}: '{}' is a variable, and nothing says what it starts with", file,
            input->name());
  }
}

// How many samples a run of the graph has: the first extent of its first input, since a file does not say.
int64_t leading_extent(const Graph& graph) {
  for (const auto& input : graph.inputs()) {
    if (input->role() == InputRole::input && input->type().rank() > 0)
      return input->type().static_shape().front();
  }
  return 1;
}

// "length=128"
void add_size(SymbolBindings& sizes, const std::string& text) {
  const size_t equals = text.rfind('=');
  const int64_t size = equals == std::string::npos ? 0 : parse_integer(text.substr(equals + 1)).value_or(0);
  require(equals != 0 && size > 0, ErrorCode::invalid_argument,
          "--size takes NAME=N, such as length=128, not '{}'", text);
  sizes[text.substr(0, equals)] = size;
}

}  // namespace

void add_model_arguments(CLI::App& command, ModelArguments& arguments) {
  command
      .add_option("model", arguments.model,
                  "Network by name; `tessera models` lists them. For inference also a file: NAME.onnx, or "
                  "NAME.graph with a graph's text, which is planned only where it has variables")
      ->required();
  command.add_option("--batch", arguments.batch, "Images of one step")
      ->capture_default_str()
      ->each([&arguments](const std::string&) { arguments.batch_given = true; })
      ->check(CLI::PositiveNumber);
  command.add_flag("--train", arguments.train,
                   "The whole training step (forward, backward, SGD with momentum) instead of inference");
  CLI::Option* device = command
                            .add_option("--device", arguments.device,
                                        "auto, cpu, cuda, cuda:1, cuda:plan-h100, reference or null")
                            ->capture_default_str();
  command
      .add_option_function<std::string>(
          "--plan-for", [&arguments](const std::string& card) { arguments.device = "cuda:plan-" + card; },
          "Plan for a GPU that is not there: a100, h100, h200 or b200")
      ->excludes(device);
  command.add_option("--precision", arguments.precision, "fp32, tf32, bf16 or fp16")->capture_default_str();
  command
      .add_option("--image-size", arguments.image_size,
                  "Height and width in pixels (default: the network's own)")
      ->check(CLI::PositiveNumber);
  command.add_option("--classes", arguments.classes, "Outputs (default: the network's own)")
      ->check(CLI::PositiveNumber);
  command
      .add_option_function<std::vector<std::string>>(
          "--size",
          [&arguments](const std::vector<std::string>& all) {
            for (const std::string& one : all) add_size(arguments.sizes, one);
          },
          "Of a network in a file: NAME=N, an extent that its inputs leave open (may be repeated); the first "
          "extents are --batch unless said")
      ->allow_extra_args(false);
  command.add_flag("--nondeterministic", arguments.nondeterministic,
                   "Allow kernels whose results differ in the last bits from run to run (faster on a GPU)");
  // Bound to an optional, a flag that was not given would be false.
  command.add_flag_function(
      "--recompute,!--no-recompute", [&arguments](int64_t count) { arguments.recompute = count > 0; },
      "Recompute cheap activations for the gradients, or keep all (default: as the device likes it)");
  command
      .add_option("--bucket-mib", arguments.bucket_mib,
                  "Of several ranks: MiB of gradients that travel together; 0: all (default: as the device "
                  "likes it)")
      ->check(CLI::NonNegativeNumber);
  command.add_flag("--shard-optimizer", arguments.shard_optimizer,
                   "Of several ranks: each keeps the optimizer's state of its part of every parameter alone");
  command
      .add_option(
          "--reduce-type", arguments.reduce_type,
          "Of several ranks: the type in which gradients travel: fp32, bf16 or, with --precision fp16, "
          "fp16")
      ->check(CLI::IsMember({"fp32", "bf16", "fp16"}));
  command.add_flag("--gradient-delay", arguments.delays_gradients,
                   "Of a training step: the update takes the gradients of the step before");
  command
      .add_option("--collective-blocks", arguments.collective_blocks,
                  "Of several ranks: thread blocks that a GPU's collectives have at most (default: as NCCL "
                  "likes it)")
      ->check(CLI::Range(1, 64));
  command.add_flag("--tune", arguments.tune, "Time the candidate kernels first");
  command.add_option("--tuning-file", arguments.tuning_file, "Where the winners are remembered");
  command.add_option("--disable-pass", arguments.disabled_passes,
                     "Leave out a compiler pass, by name; may be repeated");
}

void join_ranks(ModelArguments& arguments) {
  arguments.communicator = distribute::connect_by_environment();
  if (arguments.communicator == nullptr) return;
  require(arguments.train || network_format_of(arguments.model) != nullptr, ErrorCode::invalid_argument,
          "several ranks make a training step, or run what a file has: --train");
  Communicator& communicator = *arguments.communicator;
  arguments.ranks = {.rank = communicator.rank(), .count = communicator.size()};
  const int64_t place = distribute::place_on_machine(communicator);
  if (arguments.device == "cuda" || arguments.device == "auto")
    arguments.device = fmt::format("{}:rank={}", arguments.device, place);
}

models::Model make_model(const ModelArguments& arguments) {
  require(network_format_of(arguments.model) == nullptr, ErrorCode::invalid_argument,
          "'{}' is a file, of whose network no weights and labels by a formula are known", arguments.model);
  require(arguments.sizes.empty(), ErrorCode::invalid_argument,
          "--size: '{}' is a network by name; --batch and --image-size are its sizes", arguments.model);
  models::ClassifierOptions options = models::describe(arguments.model).defaults;
  if (arguments.image_size > 0) options.image_size = arguments.image_size;
  if (arguments.classes > 0) options.classes = arguments.classes;
  return models::create(arguments.model, options);
}

CompileOptions compile_options_of(const ModelArguments& arguments) {
  CompileOptions compile_options;
  compile_options.passes.precision = parse_precision(arguments.precision);
  compile_options.passes.frozen = !arguments.train;
  compile_options.passes.deterministic = !arguments.nondeterministic;
  compile_options.passes.recompute = arguments.recompute;
  if (arguments.bucket_mib.has_value())
    compile_options.passes.bucket_bytes = static_cast<int64_t>(*arguments.bucket_mib * (1 << 20));
  compile_options.most_collective_blocks = arguments.collective_blocks;
  if (arguments.communicator != nullptr) compile_options.communicators[""] = arguments.communicator;
  compile_options.pipeline.disabled = {arguments.disabled_passes.begin(), arguments.disabled_passes.end()};
  compile_options.tune = arguments.tune;
  compile_options.tuning_file = arguments.tuning_file;
  return compile_options;
}

CompiledModel compile_model(const ModelArguments& arguments, std::shared_ptr<Workspace> workspace) {
  CompileOptions compile_options = compile_options_of(arguments);
  CompiledModel result;
  result.batch = arguments.batch;
  if (const NetworkFormat* format = network_format_of(arguments.model)) {
    require(!arguments.train, ErrorCode::invalid_argument, "--train: '{}' is a network for inference",
            arguments.model);
    NetworkFile file = format->read(arguments.model, {.batch = arguments.batch, .others = arguments.sizes});
    result.step.graph = std::move(file.graph);
    result.weights = std::move(file.weights);
    result.batch = leading_extent(*result.step.graph);
  } else if (arguments.train) {
    // As bench/README.md has it for every peer.
    const optim::SgdOptions descent{.learning_rate = kLearningRate, .momentum = 0.9, .weight_decay = 5e-5};
    const tasks::ImageClassificationOptions options{
        .images = {.type = arguments.bytes ? DataType::uint8 : DataType::fp32}};
    result.step = train::build_training_step(tasks::image_classification(make_model(arguments), options),
                                             {.sizes = {{"batch", arguments.batch}},
                                              .phase = {.groups = {{.optimizer = optim::sgd(descent)}}},
                                              .precision = compile_options.passes.precision,
                                              .decay_all = true,
                                              .ranks = arguments.ranks,
                                              .shard_optimizer = arguments.shard_optimizer,
                                              .reduce_type = parse_data_type(arguments.reduce_type),
                                              .gradient_delay = arguments.delays_gradients ? 1 : 0,
                                              .local_steps = arguments.local_steps},
                                             arguments.kind);
  } else {
    models::Network network = models::build(make_model(arguments), arguments.batch);
    result.step = {std::move(network.graph), std::move(network.variables)};
  }
  result.device =
      workspace != nullptr ? workspace->device() : Device::open(arguments.device, &result.fallback);
  compile_options.workspace = std::move(workspace);
  result.executable = compile(*result.step.graph, result.device, compile_options);
  return result;
}

Tensor starting_value(const CompiledModel& compiled, const std::string& name) {
  if (const auto weight = compiled.weights.find(name); weight != compiled.weights.end())
    return weight->second;
  const std::vector<nn::Variable>& list = compiled.step.variables;
  const auto found =
      std::find_if(list.begin(), list.end(), [&](const nn::Variable& one) { return one.name == name; });
  require(found != list.end(), ErrorCode::internal, "the graph reads '{}', which is no variable", name);
  return train::starting_value(*found, 1);
}

std::map<std::string, Tensor> make_inputs(
    const Graph& graph, const std::function<void(const Value& input, Tensor& tensor)>& fill) {
  std::map<std::string, Tensor> inputs;
  for (const auto& input : graph.inputs()) {
    if (input->role() != InputRole::input) continue;
    Tensor tensor(input->data_type(), input->type().static_shape());
    fill(*input, tensor);
    inputs.emplace(input->name(), std::move(tensor));
  }
  return inputs;
}

void load_variables(const ModelArguments& arguments, const CompiledModel& compiled) {
  if (network_format_of(arguments.model) != nullptr) check_has_weights(compiled, arguments.model);
  compiled.executable->load([&](const std::string& name) { return starting_value(compiled, name); });
}

void stage_inputs(const ModelArguments& arguments, const CompiledModel& compiled) {
  const bool is_file = network_format_of(arguments.model) != nullptr;
  // 0 and 1 are indices into whatever a network looks up.
  const int64_t classes = is_file ? 2 : make_model(arguments).options.classes;
  compiled.executable->stage(synthetic_inputs(*compiled.step.graph, classes));
}

void make_ready(const ModelArguments& arguments, const CompiledModel& compiled) {
  load_variables(arguments, compiled);
  stage_inputs(arguments, compiled);
}

}  // namespace tessera::cli
