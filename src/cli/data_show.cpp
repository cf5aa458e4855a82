#include <algorithm>

#include <fmt/format.h>

#include "tessera/base/error.h"
#include "tessera/base/file.h"
#include "tessera/data/crop.h"
#include "tessera/report/pictures.h"
#include "tessera/report/report.h"

#include "cli/data_commands.h"
#include "cli/data_parts.h"

namespace tessera::cli {
namespace {

struct ShowArguments {
  std::string folder;
  std::string out;
  int64_t count = 48;
  int64_t size = 128;
  bool crops = false;
};

// The whole image in a square of that many pixels, or a part of it that training might cut.
report::Picture picture_of(const data::EncodedSamples& samples, int64_t index,
                           const ShowArguments& arguments) {
  const std::vector<std::byte> bytes = samples.bytes(index);
  data::EncodedImage image(bytes, samples.name(index));
  const data::ImageInfo& info = image.info();
  const int64_t longer = std::max(info.height, info.width);
  const auto side = [&](int64_t own) { return std::max<int64_t>(own * arguments.size / longer, 1); };
  report::Picture picture{.height = side(info.height), .width = side(info.width), .channels = 3};
  if (arguments.crops) picture.height = picture.width = arguments.size;
  picture.pixels.resize(static_cast<size_t>(picture.height * picture.width * picture.channels));
  data::DecodeOptions decode{.height = picture.height, .width = picture.width};
  if (arguments.crops) {
    decode.crop = data::random_crop({}, info.height, info.width, 1, 0, index);
    decode.mirrored = data::random_mirror(1, 0, index);
  }
  image.decode(decode, picture.pixels);
  return picture;
}

// So many of a part, evenly spread, and what is wrong with those that cannot be shown.
train::ReportSection section_of(const DataPart& part, const ShowArguments& arguments) {
  const int64_t size = part.samples->size();
  const int64_t count = std::min(size, arguments.count);
  std::vector<report::Picture> pictures;
  std::string broken;
  for (int64_t i = 0; i < count && !stop_flag().load(); ++i) {
    const int64_t index = i * size / count;
    try {
      pictures.push_back(picture_of(*part.samples, index, arguments));
      const auto label = static_cast<size_t>(part.samples->label(index));
      pictures.back().caption = part.samples->class_names()[label];
    } catch (const Error& error) {
      if (error.code() != ErrorCode::invalid_file && error.code() != ErrorCode::io) throw;
      broken += fmt::format(" {}.", error.what());
    }
  }
  if (stop_flag().load()) throw Interrupted{};
  const std::string note =
      fmt::format("{} of {} images, {}.{}", pictures.size(), size,
                  arguments.crops ? "each a part as training cuts them at random" : "whole", broken);
  return report::gallery_section(part.name, note, pictures);
}

void run_show(const ShowArguments& arguments) {
  install_stop_handler();
  std::vector<train::ReportSection> sections;
  for (const DataPart& part : open_data_parts(arguments.folder))
    sections.push_back(section_of(part, arguments));
  write_file(arguments.out, report::render_sections(arguments.folder, sections));
  fmt::print("{}: open it in a browser\n", arguments.out);
}

void add_show(CLI::App* command) {
  command->footer("Example: tessera data show data/fashion-jpeg -o sheet.html");
  auto arguments = std::make_shared<ShowArguments>();
  command->add_option("folder", arguments->folder, "Folder of images, of tar shards, or of TFRecord files")
      ->required();
  command->add_option("-o,--out", arguments->out, "The page, one file that needs nothing beside it")
      ->required();
  command->add_option("--count", arguments->count, "Images of each part, evenly spread over it")
      ->capture_default_str()
      ->check(CLI::Range(1, 10000));
  command->add_option("--size", arguments->size, "Pixels of an image's longer side")
      ->capture_default_str()
      ->check(CLI::Range(1, 2048));
  command->add_flag("--crops", arguments->crops, "Parts as training cuts and mirrors them at random");
  command->callback([arguments] { run_show(*arguments); });
}

const DataCommandRegistration kRegistration({.name = "show",
                                             .documentation = "Write a page of images with their labels",
                                             .add = add_show});

}  // namespace
}  // namespace tessera::cli
