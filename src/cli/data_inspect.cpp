#include <algorithm>
#include <map>
#include <mutex>

#include <fmt/format.h>

#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/data/shards.h"

#include "cli/data_annotations.h"
#include "cli/data_commands.h"
#include "cli/data_parts.h"
#include "cli/data_sounds.h"
#include "cli/json.h"

namespace tessera::cli {
namespace {

struct InspectArguments {
  std::string folder;
  bool headers = false;
  bool json = false;
};

// What was found in a part of the data.
struct Findings {
  std::vector<int64_t> of_class;
  std::map<std::string, int64_t> formats;
  std::vector<int64_t> heights;
  std::vector<int64_t> widths;
  int64_t bytes = 0;
  int64_t oriented = 0;
  std::map<int64_t, std::string> broken;  // by sample
  std::vector<std::string> shards;        // faults of
};

Findings inspect(const DataPart& part, bool headers) {
  Findings findings;
  findings.of_class.resize(part.samples->class_names().size());
  std::mutex mutex;
  // All of its pixels unless its header is enough.
  const auto look_at = [&](int64_t index) {
    const std::vector<std::byte> bytes = part.samples->bytes(index);
    data::EncodedImage image = open_image(part, index, bytes);
    const data::ImageInfo info = image.info();
    if (!headers) {
      std::vector<uint8_t> pixel(3);
      image.decode({.height = 1, .width = 1, .filter = data::ResizeFilter::nearest, .scaled = false}, pixel);
    }
    const std::lock_guard lock(mutex);
    if (part.annotated == nullptr) ++findings.of_class[static_cast<size_t>(part.samples->label(index))];
    ++findings.formats[std::string(data::format_name(info.format))];
    findings.heights.push_back(info.height);
    findings.widths.push_back(info.width);
    findings.bytes += std::ssize(bytes);
    findings.oriented += info.orientation != 1 ? 1 : 0;
  };
  findings.broken = visit_samples(part, look_at);
  if (!headers) findings.shards = data::check_shards(part.folder);
  return findings;
}

nlohmann::json to_json(const DataPart& part, const Findings& findings) {
  nlohmann::json classes = nlohmann::json::object();
  for (size_t i = 0; i < findings.of_class.size(); ++i)
    classes[part.samples->class_names()[i]] = findings.of_class[i];
  nlohmann::json broken = nlohmann::json::array();
  for (const auto& [index, message] : findings.broken) broken.push_back(message);
  nlohmann::json object{{"images", part.samples->size()},
                        {"formats", findings.formats},
                        {"bytes", findings.bytes},
                        {"oriented", findings.oriented},
                        {"height", spread(findings.heights)},
                        {"width", spread(findings.widths)},
                        {"broken", broken},
                        {"broken_shards", findings.shards}};
  if (part.annotated != nullptr) {
    object["annotations"] = to_json(*part.annotated, count_annotations(*part.annotated));
  } else {
    object["classes"] = classes;
  }
  return object;
}

void print(const DataPart& part, const Findings& findings) {
  fmt::print("{}: {} images of {} classes, {}\n", part.name, part.samples->size(),
             part.samples->class_names().size(), format_bytes(static_cast<double>(findings.bytes)));
  if (part.annotated == nullptr) {
    const auto [fewest, middle, most] = spread(findings.of_class);
    fmt::print("  images of a class: {} to {}, half of them have {} or fewer\n", fewest, most, middle);
  }
  for (const auto& [format, count] : findings.formats) fmt::print("  {}: {}\n", format, count);
  const auto width = spread(findings.widths);
  const auto height = spread(findings.heights);
  fmt::print("  width {} to {}, middle {}; height {} to {}, middle {} pixels\n", width[0], width[2], width[1],
             height[0], height[2], height[1]);
  if (findings.oriented > 0) fmt::print("  {} are stored oriented or mirrored (EXIF)\n", findings.oriented);
  fmt::print("  {} cannot be read\n", findings.broken.size());
  for (const auto& [index, message] : findings.broken) fmt::print("    {}\n", message);
  for (const std::string& fault : findings.shards) fmt::print("    {}\n", fault);
  if (part.annotated != nullptr) print(*part.annotated, count_annotations(*part.annotated));
}

void run_inspect(const InspectArguments& arguments) {
  install_stop_handler();
  nlohmann::json object = nlohmann::json::object();
  for (const DataPart& part : open_data_parts(arguments.folder)) {
    const auto tell = [&](const auto& findings) {
      if (arguments.json) {
        object[part.name] = to_json(part, findings);
      } else {
        print(part, findings);
      }
    };
    if (part.sounds) {
      tell(inspect_sounds(part, arguments.headers));
    } else {
      tell(inspect(part, arguments.headers));
    }
  }
  if (arguments.json) fmt::print("{}\n", dump_json(object, 2));
}

void add_inspect(CLI::App* command) {
  command->footer("Example: tessera data inspect data/fashion-jpeg");
  auto arguments = std::make_shared<InspectArguments>();
  command
      ->add_option(
          "folder", arguments->folder,
          "Folder of images, tar shards, TFRecord files, of COCO's or VOC's annotations, or of sounds")
      ->required();
  command->add_flag("--headers", arguments->headers, "Read headers alone: faster, finds fewer faults");
  command->add_flag("--json", arguments->json, "Print what was found of each part by its name");
  command->callback([arguments] { run_inspect(*arguments); });
}

const DataCommandRegistration kRegistration(
    {.name = "inspect",
     .documentation = "Count images or sounds, classes, boxes and sizes, and find what is broken",
     .add = add_inspect});

}  // namespace
}  // namespace tessera::cli
