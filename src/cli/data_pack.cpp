#include <fmt/format.h>

#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/data/shards.h"

#include "cli/data_commands.h"
#include "cli/data_parts.h"

namespace tessera::cli {
namespace {

struct PackArguments {
  std::string folder;
  std::string out;
  int64_t megabytes = 256;
};

void pack_part(const DataPart& part, const std::filesystem::path& out, int64_t shard_bytes) {
  require(part.annotated == nullptr, ErrorCode::unsupported,
          "{}: holds annotated images; shards are of sounds, or of images with one class each",
          part.folder.string());
  int64_t samples = 0;
  data::PackOptions options{
      .shard_bytes = shard_bytes, .unknown_ending = part.sounds ? "wav" : "jpg", .stop = &stop_flag()};
  options.on_shard = [&](const data::PackedShard& shard) {
    samples += shard.samples;
    fmt::print("{}: {} {}, {}; {} of {}\n", (out / shard.name).string(), shard.samples, part.plural(),
               format_bytes(static_cast<double>(shard.bytes)), samples, part.samples->size());
    std::fflush(stdout);
  };
  const data::PackResult result = data::pack_shards(*part.samples, out, options);
  if (!result.completed) {
    fmt::print("stopped after {} shards; the same command goes on\n", result.shards.size());
    throw Interrupted{};
  }
  fmt::print("{}: {} shards, {} of them from before, {} {} of {} classes\n", out.string(),
             result.shards.size(), result.kept, part.samples->size(), part.plural(),
             part.samples->class_names().size());
}

void run_pack(const PackArguments& arguments) {
  install_stop_handler();
  for (const DataPart& part : open_data_parts(arguments.folder)) {
    const std::filesystem::path out = arguments.out;
    pack_part(part, part.name == "all" ? out : out / (part.name == "test" ? "val" : part.name),
              arguments.megabytes << 20);
  }
}

void add_pack(CLI::App* command) {
  command->footer(
      "Each shard appears complete or not at all; the same command goes on where it was stopped.\n"
      "Example: tessera data pack imagenet -o imagenet-shards\n"
      "         tessera train recipes/resnet50.toml --set data.kind=tar --set data.path=imagenet-shards");
  auto arguments = std::make_shared<PackArguments>();
  command->add_option("folder", arguments->folder, "Folder of images or sounds")->required();
  command->add_option("-o,--out", arguments->out, "Folder of the shards")->required();
  command->add_option("--shard-size", arguments->megabytes, "MiB of a shard")
      ->capture_default_str()
      ->check(CLI::Range(1, 1 << 20));
  command->callback([arguments] { run_pack(*arguments); });
}

const DataCommandRegistration kRegistration(
    {.name = "pack", .documentation = "Write a folder of images or sounds as tar shards", .add = add_pack});

}  // namespace
}  // namespace tessera::cli
