#include <algorithm>

#include <fmt/format.h>

#include "tessera/base/error.h"
#include "tessera/base/file.h"
#include "tessera/data/crop.h"
#include "tessera/report/pictures.h"
#include "tessera/report/report.h"

#include "cli/data_commands.h"
#include "cli/data_drawing.h"
#include "cli/data_parts.h"
#include "cli/data_sounds.h"

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
data::View view_of(const data::ImageInfo& info, int64_t index, const ShowArguments& arguments) {
  const int64_t longer = std::max(info.height, info.width);
  const auto side = [&](int64_t own) { return std::max<int64_t>(own * arguments.size / longer, 1); };
  data::View view = data::whole_view(info.height, info.width, side(info.height), side(info.width));
  if (!arguments.crops) return view;
  view.height = view.width = arguments.size;
  view.part = data::random_crop({}, info.height, info.width, 1, 0, index);
  view.mirrored = data::random_mirror(1, 0, index);
  return view;
}

report::Picture picture_of(const DataPart& part, int64_t index, const ShowArguments& arguments) {
  if (part.sounds) return sound_picture(part, index);
  const std::vector<std::byte> bytes = part.samples->bytes(index);
  data::EncodedImage image = open_image(part, index, bytes);
  const data::View view = view_of(image.info(), index, arguments);
  report::Picture picture{.height = view.height, .width = view.width, .channels = 3};
  picture.pixels.resize(static_cast<size_t>(picture.height * picture.width * picture.channels));
  image.decode({.crop = view.part, .height = view.height, .width = view.width, .mirrored = view.mirrored},
               picture.pixels);
  const std::vector<std::string>& classes = part.samples->class_names();
  if (part.annotated != nullptr) {
    draw_objects(picture, part.annotated->image(index), view, classes);
  } else {
    picture.caption = classes[static_cast<size_t>(part.samples->label(index))];
  }
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
      pictures.push_back(picture_of(part, index, arguments));
    } catch (const Error& error) {
      if (error.code() != ErrorCode::invalid_file && error.code() != ErrorCode::io) throw;
      broken += fmt::format(" {}.", error.what());
    }
  }
  if (stop_flag().load()) throw Interrupted{};
  const std::string note =
      part.sounds
          ? fmt::format("{} of {} sounds, the first four seconds of each.{}", pictures.size(), size, broken)
          : fmt::format("{} of {} images, {}.{}", pictures.size(), size,
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
  command
      ->add_option(
          "folder", arguments->folder,
          "Folder of images, tar shards, TFRecord files, of COCO's or VOC's annotations, or of sounds")
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

const DataCommandRegistration kRegistration(
    {.name = "show",
     .documentation = "Write a page of images with their labels, boxes and masks, or of spectrograms",
     .add = add_show});

}  // namespace
}  // namespace tessera::cli
