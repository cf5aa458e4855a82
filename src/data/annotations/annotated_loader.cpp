#include "tessera/data/annotated_loader.h"

#include <algorithm>
#include <mutex>
#include <set>

#include <fmt/format.h>

#include "tessera/base/error.h"

#include "data/batches.h"

namespace tessera::data {
namespace {

// Where the fields of one image of a batch are written.
struct Row {
  std::span<uint8_t> pixels;
  std::span<float> boxes;     // [objects * 4]
  std::span<int32_t> labels;  // [objects]
  std::span<bool> ignored;
  std::span<uint8_t> masks;  // [objects * H * W]; empty: none
  int32_t& count;
  int64_t& id;
  std::span<int32_t> size;           // [2]
  std::span<int32_t> anchor_labels;  // [anchors]; empty: none
  std::span<float> anchor_boxes;     // [anchors * 4]

  void clear() const {
    std::ranges::fill(pixels, uint8_t{0});
    clear_objects();
    id = -1;
    std::ranges::fill(size, 0);
    std::ranges::fill(anchor_labels, kUncounted);
    std::ranges::fill(anchor_boxes, 0.0F);
  }
  void clear_objects() const {
    std::ranges::fill(boxes, 0.0F);
    std::ranges::fill(labels, -1);
    std::ranges::fill(ignored, false);
    std::ranges::fill(masks, uint8_t{0});
    count = 0;
  }
};

// Places among the fields.
constexpr size_t kImages = 0;
constexpr size_t kBoxes = 1;
constexpr size_t kLabels = 2;
constexpr size_t kIgnored = 3;
constexpr size_t kCount = 4;
constexpr size_t kIds = 5;
constexpr size_t kSizes = 6;
constexpr size_t kAlways = 7;  // so many are always there

Row row_of(const ExampleRow& row, bool masks, bool anchors) {
  const size_t first_target = kAlways + (masks ? 1 : 0);
  return {.pixels = elements_of<uint8_t>(row, kImages),
          .boxes = elements_of<float>(row, kBoxes),
          .labels = elements_of<int32_t>(row, kLabels),
          .ignored = elements_of<bool>(row, kIgnored),
          .masks = masks ? elements_of<uint8_t>(row, kAlways) : std::span<uint8_t>{},
          .count = elements_of<int32_t>(row, kCount).front(),
          .id = elements_of<int64_t>(row, kIds).front(),
          .size = elements_of<int32_t>(row, kSizes),
          .anchor_labels = anchors ? elements_of<int32_t>(row, first_target) : std::span<int32_t>{},
          .anchor_boxes = anchors ? elements_of<float>(row, first_target + 1) : std::span<float>{}};
}

void check_options(const AnnotatedExampleOptions& options) {
  const auto code = ErrorCode::invalid_argument;
  const Shape& shape = options.image_shape;
  require(shape.size() == 3 && shape[0] > 0 && shape[1] > 0 && (shape[2] == 1 || shape[2] == 3), code,
          "images of shape {}, expected [H, W, 1 or 3]", to_string(shape));
  require(options.objects > 0, code, "objects is {}, it must be positive", options.objects);
  check_random_crop(options.resized_crop);
  check_overlap_crop(options.overlap_crop);
  check_visibility(options.visibility);
  check_anchor_matching(options.targets.matching);
}

class AnnotatedExamples : public Examples {
 public:
  AnnotatedExamples(std::shared_ptr<const AnnotatedSamples> samples, const AnnotatedExampleOptions& options)
      : samples_(std::move(samples)), options_(options), broken_(options.broken, samples_->size()) {}

  int64_t size() const override { return samples_->size(); }

  std::vector<Field> fields() const override {
    const Dimension batch = Dimension::symbol(kBatch);
    const Shape& image = options_.image_shape;
    const int64_t objects = options_.objects;
    std::vector<Field> fields{{"images", {DataType::uint8, {batch, image[0], image[1], image[2]}}},
                              {"boxes", {DataType::fp32, {batch, objects, 4}}},
                              {"labels", {DataType::int32, {batch, objects}}},
                              {"ignored", {DataType::boolean, {batch, objects}}},
                              {"object_count", {DataType::int32, {batch}}},
                              {"image_ids", {DataType::int64, {batch}}},
                              {"image_sizes", {DataType::int32, {batch, 2}}}};
    if (options_.masks) fields.push_back({"masks", {DataType::uint8, {batch, objects, image[0], image[1]}}});
    if (const int64_t anchors = std::ssize(options_.targets.anchors); anchors > 0) {
      fields.push_back({"anchor_labels", {DataType::int32, {batch, anchors}}});
      fields.push_back({"anchor_boxes", {DataType::fp32, {batch, anchors, 4}}});
    }
    return fields;
  }

  void read(int64_t index, const RandomView& view, const ExampleRow& bytes) const override {
    const Row row = parts_of(bytes);
    if (!broken_.read(index, [&](int64_t candidate) { decode(candidate, view, row); })) row.clear();
  }
  void fill(const ExampleRow& bytes) const override { parts_of(bytes).clear(); }

  std::vector<std::string> remarks() const override {
    std::vector<std::string> remarks = broken_.remarks();
    const std::lock_guard lock(mutex_);
    if (!crowded_.empty()) {
      remarks.push_back(fmt::format("{} of {} images had more than {} objects, of which the first were taken",
                                    crowded_.size(), samples_->size(), options_.objects));
    }
    return remarks;
  }

 private:
  Row parts_of(const ExampleRow& bytes) const {
    return row_of(bytes, options_.masks, !options_.targets.anchors.empty());
  }

  void decode(int64_t index, const RandomView& random, const Row& row) const {
    const std::vector<std::byte> bytes = samples_->bytes(index);
    EncodedImage encoded = samples_->open(index, bytes, options_.limits);
    const AnnotatedImage& image = samples_->image(index);
    const View view = view_of(image, random, index);
    encoded.decode({.crop = view.part,
                    .height = view.height,
                    .width = view.width,
                    .channels = options_.image_shape[2],
                    .filter = options_.filter,
                    .mirrored = view.mirrored},
                   row.pixels);
    row.clear_objects();
    row.id = image.id;
    row.size[0] = static_cast<int32_t>(image.height);
    row.size[1] = static_cast<int32_t>(image.width);
    for (const AnnotatedObject& object : image.objects) {
      if (!add_object(image, object, view, row)) {
        const std::lock_guard lock(mutex_);
        crowded_.insert(index);
        break;
      }
    }
    set_targets(row);
  }

  // By the objects of the row.
  void set_targets(const Row& row) const {
    const AnchorTargets& targets = options_.targets;
    if (targets.anchors.empty()) return;
    const auto count = static_cast<size_t>(row.count);
    std::vector<BoundingBox> boxes(count);
    for (size_t i = 0; i < count; ++i)
      boxes[i] = {row.boxes[4 * i], row.boxes[4 * i + 1], row.boxes[4 * i + 2], row.boxes[4 * i + 3]};
    const std::vector<int32_t> found =
        match_anchors(targets.anchors, boxes, row.ignored.first(count), targets.matching);
    std::ranges::fill(row.anchor_boxes, 0.0F);
    for (size_t i = 0; i < found.size(); ++i) {
      row.anchor_labels[i] = found[i] < 0 ? found[i] : row.labels[static_cast<size_t>(found[i])];
      if (found[i] < 0) continue;
      const BoxOffsets offsets =
          box_offsets(targets.anchors[i], boxes[static_cast<size_t>(found[i])], targets.weights);
      std::ranges::copy(offsets, row.anchor_boxes.begin() + static_cast<int64_t>(4 * i));
    }
  }

  View view_of(const AnnotatedImage& image, const RandomView& random, int64_t example) const {
    View view = whole_view(image.height, image.width, options_.image_shape[0], options_.image_shape[1]);
    const auto [seed, epoch] = random;
    if (options_.crop == AnnotatedCrop::resized)
      view.part = random_crop(options_.resized_crop, image.height, image.width, seed, epoch, example);
    if (options_.crop == AnnotatedCrop::overlap) {
      std::vector<BoundingBox> boxes;
      for (const AnnotatedObject& object : image.objects) boxes.push_back(object.box);
      view.part =
          random_overlap_crop(options_.overlap_crop, image.height, image.width, boxes, seed, epoch, example);
    }
    view.mirrored = options_.mirror && random_mirror(seed, epoch, example);
    return view;
  }

  // False where it is seen and there is no room for it.
  bool add_object(const AnnotatedImage& image, const AnnotatedObject& object, const View& view,
                  const Row& row) const {
    const std::optional<BoundingBox> box = seen(object.box, view, options_.visibility);
    if (!box.has_value()) return true;
    if (row.count == options_.objects) return false;
    const auto place = static_cast<size_t>(row.count++);
    const float corners[] = {box->left, box->top, box->right, box->bottom};
    std::ranges::copy(corners, row.boxes.begin() + static_cast<int64_t>(4 * place));
    row.labels[place] = object.label;
    row.ignored[place] = object.ignored;
    if (!row.masks.empty() && object.has_mask()) {
      const size_t pixels = row.masks.size() / row.labels.size();
      draw_mask(mask_of(image, object), view, row.masks.subspan(place * pixels, pixels));
    }
    return true;
  }

  const std::shared_ptr<const AnnotatedSamples> samples_;
  const AnnotatedExampleOptions options_;
  const BrokenRecord broken_;
  mutable std::mutex mutex_;  // guards crowded_
  mutable std::set<int64_t> crowded_;
};

std::shared_ptr<const Examples> examples_of(std::shared_ptr<const AnnotatedSamples> samples,
                                            const AnnotatedExampleOptions& options) {
  require(samples != nullptr, ErrorCode::invalid_argument, "a loader needs samples");
  check_options(options);
  return std::make_shared<const AnnotatedExamples>(std::move(samples), options);
}

}  // namespace

AnnotatedLoader::AnnotatedLoader(std::shared_ptr<const AnnotatedSamples> samples,
                                 const BatchOptions& batching, const AnnotatedExampleOptions& images)
    : ExampleBatches(examples_of(std::move(samples), images), batching) {}

}  // namespace tessera::data
