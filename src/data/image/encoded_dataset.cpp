#include <algorithm>
#include <limits>

#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/data/encoded.h"

#include "data/image/device_part.h"

namespace tessera::data {
namespace {

// Whatever the order and the batches: the same images are made from the same files, by whoever makes them.
bool is_hosts(int64_t index, double share) {
  constexpr uint64_t kSpread = 0x9E3779B97F4A7C15;  // the golden ratio: numbers in a row are spread evenly
  const uint64_t place = static_cast<uint64_t>(index) * kSpread >> 32;
  return static_cast<double>(place) < share * 0x1p32;
}

int64_t pixel_bytes(const ImageInfo& info) {
  return info.height * info.width * 3;
}

}  // namespace

std::vector<std::byte> EncodedSamples::first_bytes(int64_t index, int64_t most) const {
  std::vector<std::byte> all = bytes(index);
  all.resize(static_cast<size_t>(std::min(std::ssize(all), most)));
  return all;
}

EncodedDataset::EncodedDataset(std::shared_ptr<const EncodedSamples> samples,
                               const EncodedDatasetOptions& options)
    : samples_(std::move(samples)),
      options_(options),
      broken_(options.broken, samples_ != nullptr ? samples_->size() : 0) {
  const auto code = ErrorCode::invalid_argument;
  const Shape& shape = options_.image_shape;
  require(samples_ != nullptr && samples_->size() > 0, code, "a data set of no samples");
  require(shape.size() == 3 && shape[0] > 0 && shape[1] > 0 && (shape[2] == 1 || shape[2] == 3), code,
          "images of shape {}, expected [H, W, 1 or 3]", to_string(shape));
  require(options_.center_share > 0 && options_.center_share <= 1, code,
          "the middle that is kept is {} of the shorter side, expected above 0 and at most 1",
          options_.center_share);
  require(options_.center_ratio > 0, code, "the middle has {} of its height as width, expected more than 0",
          options_.center_ratio);
  check_random_crop(options_.crop);
  require(options_.host_share >= 0 && options_.host_share <= 1, code,
          "the CPU's share of a device's images is {}, expected 0 to 1", options_.host_share);
  if (options_.keep == KeptSamples::files) {
    kept_files_ =
        std::make_unique<BoundedCache<std::vector<std::byte>>>(samples_->size(), options_.keep_bytes);
  } else if (options_.keep == KeptSamples::pixels) {
    kept_images_ = std::make_unique<BoundedCache<DecodedImage>>(samples_->size(), options_.keep_bytes);
    kept_on_device_ = std::make_unique<DeviceCache>(samples_->size(), options_.keep_bytes);
  }
}

std::shared_ptr<const std::vector<std::byte>> EncodedDataset::file(int64_t index) const {
  if (kept_files_ != nullptr)
    if (auto kept = kept_files_->find(index); kept != nullptr) return kept;
  auto bytes = std::make_shared<const std::vector<std::byte>>(samples_->bytes(index));
  if (kept_files_ != nullptr) kept_files_->keep(index, bytes, std::ssize(*bytes));
  return bytes;
}

double EncodedDataset::ratio(int64_t index) const {
  // Most headers end before; they may hold a small picture, or a profile of colors.
  constexpr int64_t kUsualHeader = int64_t{1} << 16;
  for (const int64_t most : {kUsualHeader, std::numeric_limits<int64_t>::max()}) {
    try {
      const std::vector<std::byte> bytes = samples_->first_bytes(index, most);
      const ImageInfo info = EncodedImage(bytes, samples_->name(index), options_.limits).info();
      // WebP has the orientation after all pixels.
      if (info.format == ImageFormat::webp && std::ssize(bytes) == most) continue;
      return static_cast<double>(info.width) / static_cast<double>(info.height);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::invalid_file) break;
    }
  }
  return 1;  // who reads it meets the same error, and knows what becomes of such a sample
}

std::shared_ptr<const Dataset> EncodedDataset::reshaped(const Shape& image_shape) const {
  EncodedDatasetOptions options = options_;
  options.image_shape = image_shape;
  options.center_ratio = static_cast<double>(image_shape[1]) / static_cast<double>(image_shape[0]);
  return std::make_shared<EncodedDataset>(samples_, options);
}

void EncodedDataset::read(int64_t index, std::span<uint8_t> image, int32_t& label) const {
  read_or_replace(index, nullptr, image, label);
}

void EncodedDataset::read_random(int64_t index, const RandomView& view, std::span<uint8_t> image,
                                 int32_t& label) const {
  read_or_replace(index, &view, image, label);
}

// What a device is asked for of a sample.
struct EncodedDataset::AskedPart {
  JpegPart part;
  ImageInfo info;
  std::shared_ptr<const std::vector<std::byte>> file;  // null where the device keeps the image
};

// Of the image that it keeps, or else of the file; none where that is for the CPU.
std::optional<EncodedDataset::AskedPart> EncodedDataset::ask_for(int64_t index, const RandomView* view,
                                                                 const KeptOnDevice* kept) const {
  if (kept != nullptr) {
    const ImageInfo& info = kept->info;
    AskedPart asked{.part = device_part(info, choose_part(index, info.height, info.width, view)),
                    .info = info,
                    .file = nullptr};
    asked.part.kept = kept->image;
    return asked;
  }
  try {
    const auto bytes = file(index);
    const ImageInfo info = EncodedImage(*bytes, samples_->name(index), options_.limits).info();
    const DecodeOptions options = choose_part(index, info.height, info.width, view);
    if (!is_for_device(info, *bytes, options)) return std::nullopt;
    AskedPart asked{.part = device_part(info, options), .info = info, .file = bytes};
    asked.part.bytes = *bytes;
    return asked;
  } catch (const Error&) {
    return std::nullopt;  // the CPU meets the same error, and knows what becomes of such a sample
  }
}

JpegsUnderWay EncodedDataset::decode_rows(std::span<const DeviceImageRow> rows, const RandomView* view,
                                          JpegDecoding& decoding) const {
  const auto files = std::make_shared<std::vector<std::shared_ptr<const std::vector<std::byte>>>>();
  std::vector<JpegPart> parts;
  std::vector<ImageInfo> infos;
  std::vector<size_t> places;
  int64_t shared = 0;
  DeviceCache* const cache = kept_on_device_.get();
  int64_t bytes_to_keep = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (is_hosts(rows[i].index, options_.host_share)) {
      ++shared;
      continue;
    }
    const auto kept = cache != nullptr ? cache->find(rows[i].index) : nullptr;
    const bool is_there = kept != nullptr && kept->device == &decoding;
    std::optional<AskedPart> asked = ask_for(rows[i].index, view, is_there ? kept.get() : nullptr);
    if (!asked.has_value()) continue;
    asked->part.pixels = rows[i].image;
    if (cache != nullptr && kept == nullptr && cache->has_room(bytes_to_keep + pixel_bytes(asked->info))) {
      asked->part.keep = true;
      bytes_to_keep += pixel_bytes(asked->info);
    }
    files->push_back(asked->file);
    parts.push_back(asked->part);
    infos.push_back(asked->info);
    places.push_back(i);
  }
  const JpegsUnderWay given =
      decoding.decode_jpegs(parts, options_.image_shape[0], options_.image_shape[1], files);
  JpegsUnderWay result{.taken = std::vector<bool>(rows.size(), false), .done = given.done};
  int64_t left = std::ssize(rows);
  for (size_t i = 0; i < places.size(); ++i) {
    if (!given.taken[i]) continue;
    const DeviceImageRow& row = rows[places[i]];
    if (parts[i].keep)
      cache->keep(row.index,
                  std::make_shared<const KeptOnDevice>(KeptOnDevice{&decoding, given.kept[i], infos[i]}),
                  pixel_bytes(infos[i]));
    *row.label = samples_->label(row.index);
    result.taken[places[i]] = true;
    --left;
  }
  wanted_ += std::ssize(rows);
  left_ += left;
  shared_ += shared;
  return result;
}

std::vector<std::string> EncodedDataset::remarks() const {
  std::vector<std::string> remarks = broken_.remarks();
  if (const int64_t refused = left_ - shared_; refused > 0)
    remarks.push_back(
        fmt::format("{} of {} images were decoded by the CPU, since the device's decoder does not take them",
                    refused, wanted_.load()));
  if (shared_ > 0)
    remarks.push_back(fmt::format("{} of {} images were decoded by the CPU, as its share of {}",
                                  shared_.load(), wanted_.load(), options_.host_share));
  const auto tell_kept = [&](const auto& cache, const char* what) {
    if (cache != nullptr)
      remarks.push_back(fmt::format("{} of {} images are kept in memory {}, in {} of {}", cache->count(),
                                    samples_->size(), what, format_bytes(static_cast<double>(cache->bytes())),
                                    format_bytes(static_cast<double>(cache->capacity()))));
  };
  tell_kept(kept_files_, "as their files");
  tell_kept(kept_images_, "decoded");
  if (wanted_ > 0) tell_kept(kept_on_device_, "of the device, decoded");
  return remarks;
}

DecodeOptions EncodedDataset::choose_part(int64_t index, int64_t height, int64_t width,
                                          const RandomView* view) const {
  DecodeOptions options{.height = options_.image_shape[0],
                        .width = options_.image_shape[1],
                        .channels = options_.image_shape[2],
                        .filter = options_.filter,
                        .scaled = kept_images_ == nullptr};
  if (view == nullptr) {
    options.crop = center_crop(height, width, options_.center_share, options_.center_ratio);
  } else {
    options.crop = random_crop(options_.crop, height, width, view->seed, view->epoch, index);
    options.mirrored = options_.mirror && random_mirror(view->seed, view->epoch, index);
  }
  return options;
}

void EncodedDataset::read_or_replace(int64_t index, const RandomView* view, std::span<uint8_t> image,
                                     int32_t& label) const {
  const bool is_there = broken_.read(index, [&](int64_t candidate) {
    decode(candidate, view, image);
    label = samples_->label(candidate);
  });
  if (is_there) return;
  std::ranges::fill(image, uint8_t{0});
  label = -1;
}

std::shared_ptr<const DecodedImage> EncodedDataset::keep_whole(int64_t index, EncodedImage& encoded) const {
  try {
    auto whole = std::make_shared<const DecodedImage>(encoded.decode_whole(options_.image_shape[2]));
    kept_images_->keep(index, whole, std::ssize(whole->pixels));
    return whole;
  } catch (const Error& error) {
    // Whether a part that is wanted of it can be read, who reads that will see, as without room for it.
    if (error.code() != ErrorCode::invalid_file) throw;
    return nullptr;
  }
}

void EncodedDataset::decode(int64_t index, const RandomView* view, std::span<uint8_t> image) const {
  std::shared_ptr<const DecodedImage> whole = kept_images_ != nullptr ? kept_images_->find(index) : nullptr;
  if (whole == nullptr) {
    const auto bytes = file(index);
    const auto open = [&] { return EncodedImage(*bytes, samples_->name(index), options_.limits); };
    EncodedImage encoded = open();
    const int64_t height = encoded.info().height;
    const int64_t width = encoded.info().width;
    if (kept_images_ != nullptr && kept_images_->has_room(height * width * options_.image_shape[2])) {
      whole = keep_whole(index, encoded);
      if (whole == nullptr) encoded = open();
    }
    if (whole == nullptr) {
      encoded.decode(choose_part(index, height, width, view), image);
      return;
    }
  }
  cut_image(*whole, choose_part(index, whole->height, whole->width, view), image);
}

}  // namespace tessera::data
