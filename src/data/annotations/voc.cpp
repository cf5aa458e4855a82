// Pascal VOC's annotations (Everingham et al., "The Pascal visual object classes challenge", 2010).
#include <algorithm>
#include <cmath>

#ifdef TESSERA_PUGIXML
#include <pugixml.hpp>
#endif

#include "tessera/base/text.h"

#include "data/annotations/reading.h"
#include "data/sample_files.h"

namespace tessera::data {

#ifdef TESSERA_PUGIXML
namespace {

constexpr auto kBroken = ErrorCode::invalid_file;
constexpr double kFarthest = 1 << 24;  // pixels: what a float counts

std::string_view trim(std::string_view text) {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

pugi::xml_node child_of(const pugi::xml_node& node, const char* child, const std::string& name) {
  const pugi::xml_node found = node.child(child);
  require(!found.empty(), kBroken, "{}: <{}> has no <{}>", name, node.name(), child);
  return found;
}

double number_in(const pugi::xml_node& node, const char* child, const std::string& name) {
  const std::string_view text = trim(child_of(node, child, name).child_value());
  const std::optional<double> number = parse_real(text);
  require(number.has_value() && std::abs(*number) <= kFarthest, kBroken,
          "{}: <{}> holds '{}', expected a number of pixels", name, child, text.substr(0, 20));
  return *number;
}

int64_t extent_in(const pugi::xml_node& size, const char* child, const std::string& name) {
  return static_cast<int64_t>(number_in(size, child, name));
}

// Objects that are difficult, or crowds, where another writer says so, are marked by a 1.
bool is_marked(const pugi::xml_node& object, const char* child) {
  return trim(object.child(child).child_value()) == "1";
}

AnnotatedObject object_of(const pugi::xml_node& node, const std::vector<std::string>& classes,
                          const std::string& name) {
  const std::string_view called = trim(child_of(node, "name", name).child_value());
  const auto place = std::ranges::find(classes, called);
  require(place != classes.end(), kBroken,
          "{}: '{}' is none of the {} classes, which classes.txt names where they are not VOC's{}", name,
          called, classes.size(), did_you_mean(called, classes));
  const pugi::xml_node box = child_of(node, "bndbox", name);
  const auto place_of = [&](const char* child, double before) {
    return static_cast<float>(number_in(box, child, name) - before);
  };
  return {.label = static_cast<int32_t>(place - classes.begin()),
          .box = {.left = place_of("xmin", 1),
                  .top = place_of("ymin", 1),
                  .right = place_of("xmax", 0),
                  .bottom = place_of("ymax", 0)},
          .ignored = is_marked(node, "difficult")};
}

}  // namespace

void parse_voc(std::string_view xml, const std::string& name, const AnnotationOptions& options,
               Annotations& annotations) {
  pugi::xml_document document;
  const pugi::xml_parse_result parsed = document.load_buffer(xml.data(), xml.size());
  require(static_cast<bool>(parsed), kBroken, "{}: is no XML: {} at byte {}", name, parsed.description(),
          parsed.offset);
  const pugi::xml_node root = child_of(document, "annotation", name);
  AnnotatedImage image{.id = std::ssize(annotations.images),
                       .file = std::string(trim(child_of(root, "filename", name).child_value()))};
  require(stays_below(image.file), kBroken, "{}: the file's name '{}' leads out of the folder", name,
          image.file);
  const pugi::xml_node size = child_of(root, "size", name);
  image.height = extent_in(size, "height", name);
  image.width = extent_in(size, "width", name);
  check_extents(image, options.limits, name);
  int64_t number = 0;
  for (const pugi::xml_node& node : root.children("object")) {
    ++number;
    read_annotation(options, annotations, [&] {
      AnnotatedObject object = object_of(node, annotations.class_names, name);
      object.number = number;
      add_object(image, std::move(object), name, annotations);
    });
  }
  annotations.images.push_back(std::move(image));
}
#else
void parse_voc(std::string_view, const std::string& name, const AnnotationOptions&, Annotations&) {
  fail(ErrorCode::unsupported,
       "{}: this build has no reader of XML; install libpugixml-dev (tools/setup extra) and build again",
       name);
}
#endif

std::vector<std::string> voc_class_names() {
  return {"aeroplane", "bicycle",     "bird",  "boat",        "bottle", "bus",      "car",
          "cat",       "chair",       "cow",   "diningtable", "dog",    "horse",    "motorbike",
          "person",    "pottedplant", "sheep", "sofa",        "train",  "tvmonitor"};
}

}  // namespace tessera::data
