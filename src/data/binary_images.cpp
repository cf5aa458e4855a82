// Images in files of records of one size, as CIFAR's are: a label and pixels, without any header. The files
// are mapped, so that sets larger than the memory are read as they are visited.
#include <algorithm>
#include <array>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "tessera/base/error.h"
#include "tessera/base/file.h"
#include "tessera/data/registry.h"

#include "data/sample_files.h"

namespace tessera::data {
namespace {

namespace fs = std::filesystem;

// Of one record, in bytes.
struct RecordLayout {
  size_t label_at = 0;
  size_t label_bytes = 0;
  size_t pixels_at = 0;
  bool planes = false;  // all pixels of a channel, then those of the next
  Shape image_shape;    // [H, W, C]

  size_t pixel_bytes() const { return static_cast<size_t>(element_count(image_shape)); }
  size_t record_bytes() const { return std::max(label_at + label_bytes, pixels_at + pixel_bytes()); }
};

RecordLayout layout_of(const Options& options, const Shape& image_shape) {
  RecordLayout layout{.label_at = static_cast<size_t>(options.integer("label_at")),
                      .label_bytes = static_cast<size_t>(options.integer("label_bytes")),
                      .pixels_at = static_cast<size_t>(options.integer("pixels_at")),
                      .planes = options.boolean("planes"),
                      .image_shape = image_shape};
  require(layout.label_at + layout.label_bytes <= layout.pixels_at ||
              layout.label_at >= layout.pixels_at + layout.pixel_bytes(),
          ErrorCode::invalid_argument,
          "the label of a record ({} bytes from {} on: 'data.label_at', 'data.label_bytes') lies within its "
          "{} pixels' bytes, which begin at {} ('data.pixels_at')",
          layout.label_bytes, layout.label_at, layout.pixel_bytes(), layout.pixels_at);
  return layout;
}

class BinaryImages : public Dataset {
 public:
  BinaryImages(std::vector<MappedFile> files, RecordLayout layout, std::vector<std::string> class_names)
      : files_(std::move(files)), layout_(std::move(layout)), class_names_(std::move(class_names)) {
    for (const MappedFile& file : files_) {
      const auto bytes = static_cast<uint64_t>(layout_.record_bytes());
      require(file.size() > 0 && file.size() % bytes == 0, ErrorCode::invalid_file,
              "{}: {} bytes are no whole number of records of {}: {} pixels' from {} on, and the label",
              file.path().string(), file.size(), bytes, layout_.pixel_bytes(), layout_.pixels_at);
      size_ += static_cast<int64_t>(file.size() / bytes);
      ends_.push_back(size_);
    }
  }

  int64_t size() const override { return size_; }
  const Shape& image_shape() const override { return layout_.image_shape; }
  const std::vector<std::string>& class_names() const override { return class_names_; }

  int32_t label(int64_t index) const override {
    const auto [file, begin] = place_of(index);
    std::array<std::byte, 4> bytes{};
    const auto label = std::span(bytes).first(layout_.label_bytes);
    file->copy(begin + layout_.label_at, label);
    return label_of(label, index);
  }

  void read(int64_t index, std::span<uint8_t> image, int32_t& label) const override {
    const auto [file, begin] = place_of(index);
    std::vector<std::byte> record(layout_.record_bytes());
    file->copy(begin, record);
    label = label_of(std::span(record).subspan(layout_.label_at, layout_.label_bytes), index);
    const auto pixels = std::span(record).subspan(layout_.pixels_at, image.size());
    const auto channels = static_cast<size_t>(layout_.image_shape[2]);
    const size_t area = image.size() / channels;
    const size_t pixel_step = layout_.planes ? 1 : channels;
    const size_t channel_step = layout_.planes ? area : 1;
    auto target = image.begin();
    for (size_t pixel = 0; pixel < area; ++pixel) {
      for (size_t channel = 0; channel < channels; ++channel)
        *target++ = std::to_integer<uint8_t>(pixels[pixel * pixel_step + channel * channel_step]);
    }
  }

 private:
  // The file of an example, and where its record begins.
  std::pair<const MappedFile*, uint64_t> place_of(int64_t index) const {
    const auto file = static_cast<size_t>(std::ranges::upper_bound(ends_, index) - ends_.begin());
    const int64_t before = file == 0 ? 0 : ends_[file - 1];
    return {&files_[file], static_cast<uint64_t>(index - before) * layout_.record_bytes()};
  }

  int32_t label_of(std::span<const std::byte> bytes, int64_t index) const {
    uint32_t label = 0;
    for (size_t i = 0; i < bytes.size(); ++i) label |= std::to_integer<uint32_t>(bytes[i]) << (8 * i);
    if (label >= class_names_.size()) {
      const auto [file, begin] = place_of(index);
      fail(ErrorCode::invalid_file,
           "{}: the record from byte {} on has label {}, which is not one of {} classes",
           file->path().string(), begin, label, class_names_.size());
    }
    return static_cast<int32_t>(label);
  }

  std::vector<MappedFile> files_;
  std::vector<int64_t> ends_;  // of each file, in examples
  RecordLayout layout_;
  std::vector<std::string> class_names_;
  int64_t size_ = 0;
};

std::shared_ptr<const Dataset> open_binary(const Options& options, const ImageSetRequest& request) {
  const fs::path folder = options.text("path");
  const char* const key = request.split == Split::train ? "train_files" : "test_files";
  std::vector<MappedFile> files;
  for (const std::string& name : options.get<std::vector<std::string>>(key)) {
    require(stays_below(name), ErrorCode::invalid_argument, "'data.{}': '{}' is not below the folder", key,
            name);
    files.emplace_back(folder / name);
  }
  return std::make_shared<BinaryImages>(
      std::move(files), layout_of(options, request.image_shape),
      named_classes(request.classes, read_class_list(folder).value_or(std::vector<std::string>())));
}

Option files_option(const std::string& key, const std::string& of, std::vector<std::string> usual) {
  return {.key = key,
          .value = std::move(usual),
          .documentation = "Names of the files of " + of + ", in the folder or below it",
          .resuming = Resuming::fixed};
}

Option place_option(const std::string& key, int64_t usual, const std::string& documentation, Limits limits) {
  return {.key = key,
          .value = usual,
          .documentation = documentation,
          .limits = limits,
          .resuming = Resuming::fixed};
}

std::vector<Option> binary_options() {
  const Limits places = Limits::between(0, 1e9);
  return {
      path_option("Folder of the data"),
      files_option("train_files", "training",
                   {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin",
                    "data_batch_5.bin"}),
      files_option("test_files", "the test", {"test_batch.bin"}),
      place_option("label_at", 0, "At which byte of a record its label begins", places),
      place_option("label_bytes", 1, "Bytes of a label, the least significant first", Limits::between(1, 4)),
      place_option("pixels_at", 1, "At which byte of a record its pixels begin, a byte for each channel",
                   places),
      {.key = "planes",
       .value = true,
       .documentation = "Whether all pixels of a channel come before those of the next",
       .resuming = Resuming::fixed},
  };
}

std::vector<Contradiction> check_binary(const Options& options) {
  std::vector<Contradiction> found = check_path(options);
  for (const char* key : {"train_files", "test_files"}) {
    if (options.get<std::vector<std::string>>(key).empty())
      found.push_back({{key}, fmt::format("'data.{}' names no file", key)});
  }
  return found;
}

const ImageSetRegistration kRegistration(
    {.name = "binary",
     .documentation =
         "files of records of one size, each a label and pixels, without any header: as the options "
         "stand, CIFAR-10's; `classes.txt` beside them names the classes, a line each",
     .options = binary_options(),
     .open = open_binary,
     .check = check_binary});

}  // namespace
}  // namespace tessera::data
