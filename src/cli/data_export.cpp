#include <fmt/format.h>

#include "tessera/base/error.h"
#include "tessera/data/registry.h"
#include "tessera/data/shards.h"

#include "cli/data_commands.h"

namespace tessera::cli {
namespace {

struct ExportArguments {
  std::string folder;
  std::string out;
  std::string format = "jpeg";
  int64_t quality = 95;
  int64_t training = 0;
  int64_t test = 0;
};

void export_part(const ExportArguments& arguments, data::Split split, const char* part, int64_t count) {
  Options options;
  options.set("path", arguments.folder);
  const auto dataset = data::image_sets().get("idx").open(options, {.split = split});
  const std::filesystem::path out = std::filesystem::path(arguments.out) / part;
  const int64_t written = data::export_image_folder(
      *dataset, out,
      {.format = arguments.format == "png" ? data::ImageFormat::png : data::ImageFormat::jpeg,
       .quality = arguments.quality,
       .examples = count});
  fmt::print("{}: {} images of {} classes\n", out.string(), written, dataset->class_count());
}

void run_export(const ExportArguments& arguments) {
  export_part(arguments, data::Split::train, "train", arguments.training);
  export_part(arguments, data::Split::test, "val", arguments.test);
}

void add_export(CLI::App* command) {
  command->footer(
      "Example: tessera data export /usr/share/datasets/fashion-mnist -o data/fashion-jpeg\n"
      "         tessera data export /usr/share/datasets/fashion-mnist -o data/few --train 600 --test 100");
  auto arguments = std::make_shared<ExportArguments>();
  command->add_option("folder", arguments->folder, "Folder with the four IDX files")->required();
  command->add_option("-o,--out", arguments->out, "Folder of the images")->required();
  command->add_option("--format", arguments->format, "Of the files")
      ->capture_default_str()
      ->check(CLI::IsMember({"jpeg", "png"}));
  command->add_option("--quality", arguments->quality, "Of JPEG")
      ->capture_default_str()
      ->check(CLI::Range(1, 100));
  command->add_option("--train", arguments->training, "The first so many training images; all unless given")
      ->check(CLI::PositiveNumber);
  command->add_option("--test", arguments->test, "The same for the test images")->check(CLI::PositiveNumber);
  command->callback([arguments] { run_export(*arguments); });
}

const DataCommandRegistration kRegistration(
    {.name = "export",
     .documentation = "Write the images of IDX files as a folder of JPEG or PNG files",
     .add = add_export});

}  // namespace
}  // namespace tessera::cli
