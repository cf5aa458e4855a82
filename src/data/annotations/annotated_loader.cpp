#include "tessera/data/annotated_loader.h"

#include <algorithm>
#include <mutex>
#include <set>

#include <fmt/format.h>

#include "tessera/base/error.h"

#include "data/batches.h"
#include "data/prefetch.h"

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
  std::span<int32_t> size;  // [2]

  void clear() const {
    std::ranges::fill(pixels, uint8_t{0});
    clear_objects();
    id = -1;
    std::ranges::fill(size, 0);
  }
  void clear_objects() const {
    std::ranges::fill(boxes, 0.0F);
    std::ranges::fill(labels, -1);
    std::ranges::fill(ignored, false);
    std::ranges::fill(masks, uint8_t{0});
    count = 0;
  }
};

template <typename T>
std::span<T> part_of_row(Tensor& tensor, int64_t row) {
  const int64_t size = tensor.size() / tensor.shape()[0];
  return tensor.data<T>().subspan(static_cast<size_t>(row * size), static_cast<size_t>(size));
}

Row row_of(Feeds& fields, int64_t row) {
  const auto masks = fields.find("masks");
  return {.pixels = part_of_row<uint8_t>(fields.at("images"), row),
          .boxes = part_of_row<float>(fields.at("boxes"), row),
          .labels = part_of_row<int32_t>(fields.at("labels"), row),
          .ignored = part_of_row<bool>(fields.at("ignored"), row),
          .masks = masks == fields.end() ? std::span<uint8_t>{} : part_of_row<uint8_t>(masks->second, row),
          .count = part_of_row<int32_t>(fields.at("object_count"), row)[0],
          .id = part_of_row<int64_t>(fields.at("image_ids"), row)[0],
          .size = part_of_row<int32_t>(fields.at("image_sizes"), row)};
}

void check_options(const AnnotatedLoaderOptions& options) {
  const auto code = ErrorCode::invalid_argument;
  const Shape& shape = options.image_shape;
  require(shape.size() == 3 && shape[0] > 0 && shape[1] > 0 && (shape[2] == 1 || shape[2] == 3), code,
          "images of shape {}, expected [H, W, 1 or 3]", to_string(shape));
  require(options.batch_size > 0, code, "batch_size is {}, it must be positive", options.batch_size);
  require(options.objects > 0, code, "objects is {}, it must be positive", options.objects);
  check_prefetch(options.workers, options.prefetch);
  check_random_crop(options.resized_crop);
  check_overlap_crop(options.overlap_crop);
  check_visibility(options.visibility);
}

}  // namespace

class AnnotatedLoader::Reader {
 public:
  Reader(std::shared_ptr<const AnnotatedSamples> samples, const AnnotatedLoaderOptions& options)
      : samples_(std::move(samples)), options_(options), broken_(options.broken, samples_->size()) {}

  const AnnotatedSamples& samples() const { return *samples_; }
  const AnnotatedLoaderOptions& options() const { return options_; }

  // Of one image of a batch, by name.
  std::vector<Field> row_fields() const {
    const Shape& image = options_.image_shape;
    const int64_t objects = options_.objects;
    std::vector<Field> fields{{"images", {DataType::uint8, {image[0], image[1], image[2]}}},
                              {"boxes", {DataType::fp32, {objects, 4}}},
                              {"labels", {DataType::int32, {objects}}},
                              {"ignored", {DataType::boolean, {objects}}},
                              {"object_count", {DataType::int32, {}}},
                              {"image_ids", {DataType::int64, {}}},
                              {"image_sizes", {DataType::int32, {2}}}};
    if (options_.masks) fields.push_back({"masks", {DataType::uint8, {objects, image[0], image[1]}}});
    return fields;
  }

  void read(int64_t index, int64_t epoch, const Row& row) const {
    const bool is_there = broken_.read(index, [&](int64_t candidate) { decode(candidate, epoch, row); });
    if (!is_there) row.clear();
  }

  std::vector<std::string> remarks() const {
    std::vector<std::string> remarks = broken_.remarks();
    const std::lock_guard lock(mutex_);
    if (!crowded_.empty()) {
      remarks.push_back(fmt::format("{} of {} images had more than {} objects, of which the first were taken",
                                    crowded_.size(), samples_->size(), options_.objects));
    }
    return remarks;
  }

 private:
  void decode(int64_t index, int64_t epoch, const Row& row) const {
    const std::vector<std::byte> bytes = samples_->bytes(index);
    EncodedImage encoded = samples_->open(index, bytes, options_.limits);
    const AnnotatedImage& image = samples_->image(index);
    const View view = view_of(image, static_cast<uint64_t>(epoch), index);
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
  }

  View view_of(const AnnotatedImage& image, uint64_t epoch, int64_t example) const {
    View view = whole_view(image.height, image.width, options_.image_shape[0], options_.image_shape[1]);
    const uint64_t seed = options_.seed;
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
  const AnnotatedLoaderOptions options_;
  const BrokenRecord broken_;
  mutable std::mutex mutex_;  // guards crowded_
  mutable std::set<int64_t> crowded_;
};

AnnotatedLoader::AnnotatedLoader(std::shared_ptr<const AnnotatedSamples> samples,
                                 const AnnotatedLoaderOptions& options) {
  require(samples != nullptr, ErrorCode::invalid_argument, "a loader needs samples");
  check_options(options);
  reader_ = std::make_shared<const Reader>(std::move(samples), options);
  require(*batches(0) > 0, ErrorCode::invalid_argument,
          "{} images do not fill one batch of {}; lower batch_size or set drop_last to false",
          reader_->samples().size(), options.batch_size);
}

AnnotatedLoader::~AnnotatedLoader() = default;

std::vector<Field> AnnotatedLoader::fields() const {
  std::vector<Field> fields = reader_->row_fields();
  for (Field& field : fields) field.type.shape.insert(field.type.shape.begin(), Dimension::symbol(kBatch));
  return fields;
}

std::vector<SymbolBindings> AnnotatedLoader::sizes() const {
  return {{{kBatch, reader_->options().batch_size}}};
}

std::optional<int64_t> AnnotatedLoader::batches(int64_t /*epoch*/, int64_t ranks) const {
  const AnnotatedLoaderOptions& options = reader_->options();
  return batches_of(reader_->samples().size(), options.batch_size * ranks, options.drop_last);
}

std::unique_ptr<Stream> AnnotatedLoader::open(const Cursor& from, const Partition& partition) const {
  return open_into(nullptr, from, partition);
}

std::unique_ptr<Stream> AnnotatedLoader::open_into(std::shared_ptr<const BatchMemory> memory,
                                                   const Cursor& from, const Partition& partition) const {
  const int64_t count = batches_from(*this, from, partition);
  const AnnotatedLoaderOptions& options = reader_->options();
  auto make = [reader = reader_, memory = std::move(memory), epoch = from.epoch, partition,
               order = epoch_order(reader_->samples().size(), options.shuffle, options.seed, from.epoch)](
                  int64_t number) {
    const int64_t size = reader->options().batch_size;
    Batch batch = batch_without_fields(order, size, epoch, number, partition);
    for (const auto& [name, type] : reader->row_fields()) {
      Shape shape = type.static_shape();
      shape.insert(shape.begin(), size);
      batch.fields[name] = batch_tensor(memory.get(), type.data_type, shape);
    }
    for (int64_t row = 0; row < size; ++row) {
      if (row < batch.samples) {
        reader->read(batch.indices[static_cast<size_t>(row)], epoch, row_of(batch.fields, row));
      } else {
        row_of(batch.fields, row).clear();
      }
    }
    return batch;
  };
  return prefetched(std::move(make), from.batch, count, options.workers, options.prefetch);
}

std::vector<std::string> AnnotatedLoader::remarks() const {
  return reader_->remarks();
}

}  // namespace tessera::data
