// COCO's annotations of instances (Lin et al., "Microsoft COCO: Common objects in context", 2014;
// cocodataset.org, "Data format").
#include <cmath>
#include <map>
#include <unordered_map>

#include <nlohmann/json.hpp>

#include "data/annotations/reading.h"
#include "data/sample_files.h"

namespace tessera::data {
namespace {

using Json = nlohmann::json;

constexpr auto kBroken = ErrorCode::invalid_file;
constexpr int kDeepest = 16;           // of COCO's own six
constexpr double kFarthest = 1 << 24;  // pixels: what a float counts

// An annotation as it stands there: its image may come after it.
struct Pending {
  size_t number = 0;  // in the file
  int64_t image = 0;
  int64_t category = 0;
  AnnotatedObject object = {};
  bool has_runs = false;
  std::string text = {};  // of the runs, where they are one
  int64_t mask_height = 0;
  int64_t mask_width = 0;
};

// An object of the file, with what messages call it.
class Entry {
 public:
  Entry(const Json& json, std::string name) : json_(json), name_(std::move(name)) {
    require(json.is_object(), kBroken, "{}: is {}, expected an object", name_, json.type_name());
  }

  const std::string& name() const { return name_; }
  // Null: not there, or null.
  const Json* find(const char* key) const {
    const auto found = json_.find(key);
    return found == json_.end() || found->is_null() ? nullptr : &*found;
  }
  const Json& at(const char* key) const {
    const Json* found = find(key);
    require(found != nullptr, kBroken, "{}: has no '{}'", name_, key);
    return *found;
  }
  int64_t integer(const char* key) const {
    const Json& value = at(key);
    require(value.is_number_integer(), kBroken, "{}: '{}' is {}, expected a whole number", name_, key,
            value.type_name());
    return value.get<int64_t>();
  }
  std::string text(const char* key) const {
    const Json& value = at(key);
    require(value.is_string(), kBroken, "{}: '{}' is {}, expected a text", name_, key, value.type_name());
    return value.get<std::string>();
  }

 private:
  const Json& json_;
  std::string name_;
};

float coordinate_of(const Json& value, const std::string& name) {
  require(value.is_number(), kBroken, "{}: a coordinate is {}, expected a number", name, value.type_name());
  const auto number = value.get<double>();
  require(std::abs(number) <= kFarthest, kBroken, "{}: a coordinate of {}", name, number);
  return static_cast<float>(number);
}

BoundingBox box_of(const Entry& entry) {
  const Json& box = entry.at("bbox");
  require(box.is_array() && box.size() == 4, kBroken, "{}: its box is not four numbers", entry.name());
  const auto number = [&](size_t i) { return coordinate_of(box[i], entry.name()); };
  const BoundingBox result{number(0), number(1), number(0) + number(2), number(1) + number(3)};
  require(number(2) >= 0 && number(3) >= 0, kBroken, "{}: a box {} wide and {} high", entry.name(), number(2),
          number(3));
  return result;
}

// A list of outlines, or the runs of a mask by its size and their lengths, in numbers or as a text.
void read_segmentation(const Json& value, const std::string& name, Pending& pending) {
  if (value.is_array()) {
    for (const Json& outline : value) {
      require(outline.is_array(), kBroken, "{}: an outline is {}, expected a list", name,
              outline.type_name());
      std::vector<float>& corners = pending.object.outlines.emplace_back();
      for (const Json& number : outline) corners.push_back(coordinate_of(number, name));
    }
    return;
  }
  const Entry mask(value, name + ", its mask");
  const Json& size = mask.at("size");
  require(size.is_array() && size.size() == 2 && size[0].is_number_integer() && size[1].is_number_integer(),
          kBroken, "{}: its size is not two whole numbers", mask.name());
  pending.mask_height = size[0].get<int64_t>();
  pending.mask_width = size[1].get<int64_t>();
  pending.has_runs = true;
  const Json& counts = mask.at("counts");
  if (counts.is_string()) {
    pending.text = counts.get<std::string>();
    return;
  }
  require(counts.is_array(), kBroken, "{}: its runs are {}, expected a list or a text", mask.name(),
          counts.type_name());
  for (const Json& run : counts) {
    require(run.is_number_unsigned() && run.get<uint64_t>() <= UINT32_MAX, kBroken,
            "{}: a run is no whole number from 0 to {}", mask.name(), UINT32_MAX);
    pending.object.runs.push_back(run.get<uint32_t>());
  }
}

// Reads the file entry by entry, so that the whole is never held as JSON, which is many times larger.
class Reader {
 public:
  Reader(const std::string& name, const AnnotationOptions& options) : name_(name), options_(options) {}

  Annotations read(std::string_view text) {
    try {
      const Json json = Json::parse(text.begin(), text.end(), [this](int depth, auto event, Json& value) {
        return keep(depth, event, value);
      });
      require(json.is_object(), kBroken, "{}: is no JSON object", name_);
    } catch (const Json::exception& error) {
      fail(kBroken, "{}: is no JSON: {}", name_, error.what());
    }
    require(!result_.images.empty() && !categories_.empty(), kBroken,
            "{}: has {} images and {} categories, expected some of each", name_, result_.images.size(),
            categories_.size());
    name_categories();
    for (Pending& pending : pending_) read_annotation(options_, result_, [&] { resolve(pending); });
    return std::move(result_);
  }

 private:
  bool keep(int depth, Json::parse_event_t event, Json& value) {
    require(depth <= kDeepest, kBroken, "{}: lists and objects are nested more than {} deep", name_,
            kDeepest);
    if (event == Json::parse_event_t::key && depth == 1) part_ = value.get<std::string>();
    if (depth != 2 || event != Json::parse_event_t::object_end) return true;
    if (part_ == "images") add_image(value);
    if (part_ == "categories") add_category(value);
    if (part_ == "annotations") read_annotation(options_, result_, [&] { add_pending(value); });
    return false;
  }

  std::string called(const char* kind, size_t number) const {
    return name_ + ": " + kind + " " + std::to_string(number + 1);
  }

  void add_image(const Json& json) {
    const Entry entry(json, called("image", result_.images.size()));
    AnnotatedImage image{.id = entry.integer("id"),
                         .file = entry.text("file_name"),
                         .height = entry.integer("height"),
                         .width = entry.integer("width")};
    require(stays_below(image.file), kBroken, "{}: its name '{}' leads out of the folder", entry.name(),
            image.file);
    check_extents(image, options_.limits, entry.name());
    require(places_.emplace(image.id, result_.images.size()).second, kBroken,
            "{}: another has its number, {}", entry.name(), image.id);
    result_.images.push_back(std::move(image));
  }

  void add_category(const Json& json) {
    const Entry entry(json, called("category", categories_.size()));
    const int64_t id = entry.integer("id");
    require(categories_.emplace(id, entry.text("name")).second, kBroken, "{}: another has its number, {}",
            entry.name(), id);
  }

  void add_pending(const Json& json) {
    const size_t number = seen_++;
    const Entry entry(json, called("annotation", number));
    Pending pending{
        .number = number, .image = entry.integer("image_id"), .category = entry.integer("category_id")};
    pending.object.box = box_of(entry);
    pending.object.ignored = entry.find("iscrowd") != nullptr && entry.integer("iscrowd") != 0;
    const Json* segmentation = options_.masks ? entry.find("segmentation") : nullptr;
    if (segmentation != nullptr) read_segmentation(*segmentation, entry.name(), pending);
    pending_.push_back(std::move(pending));
  }

  void name_categories() {
    for (const auto& [id, name] : categories_) {
      labels_.emplace(id, static_cast<int32_t>(result_.class_names.size()));
      result_.class_names.push_back(name);
    }
  }

  void resolve(Pending& pending) {
    const std::string name = called("annotation", pending.number);
    const auto place = places_.find(pending.image);
    require(place != places_.end(), kBroken, "{}: there is no image {}", name, pending.image);
    const auto label = labels_.find(pending.category);
    require(label != labels_.end(), kBroken, "{}: there is no category {}", name, pending.category);
    AnnotatedImage& image = result_.images[place->second];
    AnnotatedObject& object = pending.object;
    object.number = static_cast<int64_t>(pending.number) + 1;
    object.label = label->second;
    require(!pending.has_runs || (pending.mask_height == image.height && pending.mask_width == image.width),
            kBroken, "{}: a mask of {}x{} pixels for an image of {}x{}", name, pending.mask_width,
            pending.mask_height, image.width, image.height);
    if (!pending.text.empty())
      object.runs = parse_run_lengths(pending.text, image.height, image.width, name).runs;
    if (pending.has_runs) check_runs({image.height, image.width, object.runs}, name);
    for (const std::vector<float>& outline : object.outlines)
      check_outline(outline, image.height, image.width, name);
    add_object(image, std::move(object), name, result_);
  }

  const std::string& name_;
  const AnnotationOptions& options_;
  std::string part_;  // the key that is being read
  size_t seen_ = 0;   // annotations
  std::vector<Pending> pending_;
  std::map<int64_t, std::string> categories_;
  std::unordered_map<int64_t, size_t> places_;
  std::unordered_map<int64_t, int32_t> labels_;
  Annotations result_;
};

}  // namespace

Annotations parse_coco(std::string_view json, const std::string& name, const AnnotationOptions& options) {
  return Reader(name, options).read(json);
}

}  // namespace tessera::data
