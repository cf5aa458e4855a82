#include "cli/model_options.h"

#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/distribute/exchange.h"
#include "tessera/distribute/registry.h"

#include "cli/file_subject.h"

namespace tessera::cli {
namespace {

// "length=128"
void add_size(SymbolBindings& sizes, const std::string& text) {
  const size_t equals = text.rfind('=');
  const int64_t size = equals == std::string::npos ? 0 : parse_integer(text.substr(equals + 1)).value_or(0);
  require(equals != 0 && size > 0, ErrorCode::invalid_argument,
          "--size takes NAME=N, such as length=128, not '{}'", text);
  sizes[text.substr(0, equals)] = size;
}

}  // namespace

void add_network_arguments(CLI::App& command, ModelArguments& arguments) {
  command
      .add_option(
          "model", arguments.model,
          "Network by name; `tessera models` lists them. Or a recipe, NAME.toml: what its task serves, "
          "with --train the step that it trains. Or for inference a network in a file: NAME.onnx, "
          "NAME.plan, which `tessera build` wrote, or NAME.graph with a graph's text, which is planned only "
          "where it has variables")
      ->required();
  CLI::Option* device = command
                            .add_option("--device", arguments.device,
                                        "auto, cpu, cuda, cuda:1, cuda:plan-h100, reference or null; of a "
                                        "plan auto is its own")
                            ->capture_default_str();
  command
      .add_option_function<std::string>(
          "--plan-for", [&arguments](const std::string& card) { arguments.device = "cuda:plan-" + card; },
          "Plan for a GPU that is not there: a100, h100, h200 or b200")
      ->excludes(device);
  command.add_option("--precision", arguments.precision, "fp32, tf32, bf16 or fp16")->capture_default_str();
  add_network_options(command, arguments.network);
  command
      .add_option_function<std::vector<std::string>>(
          "--size",
          [&arguments](const std::vector<std::string>& all) {
            for (const std::string& one : all) add_size(arguments.sizes, one);
          },
          "Of a network in a file: NAME=N, an extent that its inputs leave open (may be repeated); the first "
          "extents are --batch unless said")
      ->allow_extra_args(false);
  command
      .add_option("--set", arguments.recipe.changes,
                  "Change a value of the recipe: --set train.accumulate=2 (may be repeated)")
      ->allow_extra_args(false);
  command.add_flag("--nondeterministic", arguments.nondeterministic,
                   "Allow kernels whose results differ in the last bits from run to run (faster on a GPU)");
  command.add_flag("--tune", arguments.tune, "Time the candidate kernels first");
  command.add_option("--tuning-file", arguments.tuning_file, "Where the winners are remembered");
  command.add_option("--disable-pass", arguments.disabled_passes,
                     "Leave out a compiler pass, by name; may be repeated");
}

void add_model_arguments(CLI::App& command, ModelArguments& arguments) {
  add_network_arguments(command, arguments);
  command.add_option("--batch", arguments.batch, "Samples of one step; of a recipe its own unless said")
      ->capture_default_str()
      ->each([&arguments](const std::string&) { arguments.batch_given = true; })
      ->check(CLI::PositiveNumber);
  command.add_flag("--train", arguments.train,
                   "The whole training step (forward, backward, the recipe's optimizer or else SGD with "
                   "momentum) instead of inference");
  command.add_option("--phase", arguments.recipe.phase,
                     "Of a recipe whose task trains in several: which one --train takes, the first unless "
                     "said");
  command
      .add_option("--stage", arguments.recipe.stage,
                  "Of a recipe whose run has several: which one, 1 for the first")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
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
}

CLI::Option* add_loader_arguments(CLI::App& command, ModelArguments& arguments) {
  CLI::Option* loader =
      command
          .add_option(
              "--loader", arguments.loader_workers,
              "Feed each training step a batch of its own, as a training reads it, by a loader with so many "
              "threads (of a recipe `data.workers`, where its data has that); otherwise one batch lies on "
              "the device")
          ->check(CLI::Range(1, 256))
          ->needs("--train");
  CLI::Option* files =
      command
          .add_option(
              "--files", arguments.loader_files,
              "Of a network by name: a folder of files that the loader reads, which the device decodes "
              "as far as it can; otherwise its samples are synthetic")
          ->needs(loader);
  command
      .add_option("--cpu-share", arguments.loader_cpu_share,
                  "Of the files that the device would decode, the share that the CPU does")
      ->check(CLI::Range(0.0, 1.0))
      ->needs(files);
  return loader;
}

void join_ranks(ModelArguments& arguments) {
  arguments.communicator = distribute::connect_by_environment();
  if (arguments.communicator == nullptr) return;
  require(arguments.train || is_network_file(arguments.model), ErrorCode::invalid_argument,
          "several ranks make a training step, or run what a file has: --train");
  Communicator& communicator = *arguments.communicator;
  arguments.ranks = {.rank = communicator.rank(), .count = communicator.size()};
  const int64_t place = distribute::place_on_machine(communicator);
  if (arguments.device == "cuda" || arguments.device == "auto")
    arguments.device = fmt::format("{}:rank={}", arguments.device, place);
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

}  // namespace tessera::cli
