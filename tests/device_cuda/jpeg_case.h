// JPEG files that are difficult to decode, as a data set and for a decoder of a device.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "tessera/data/encoded.h"
#include "tessera/data/safetensors.h"
#include "tessera/device/common/jpeg_decoding.h"

#include "kernels/resized_part.h"
#include "test_folder.h"

namespace tessera::testing {

// Those of tests/data/golden, labeled by their place.
class DifficultFiles : public data::EncodedSamples {
 public:
  DifficultFiles() {
    const auto file = data::SafetensorsFile::open(std::filesystem::path(TESSERA_TEST_FOLDER).parent_path() /
                                                  "data" / "golden" / "images.safetensors");
    for (const auto& [name, entry] : file.entries()) {
      if (!name.starts_with("file/")) continue;
      const Tensor bytes = file.read(name);
      const auto* first = static_cast<const std::byte*>(bytes.raw());
      add(name.substr(5), {first, first + bytes.bytes()});
    }
  }
  void add(const std::string& name, std::vector<std::byte> bytes) {
    names_.push_back(name);
    files_.push_back(std::move(bytes));
  }

  int64_t size() const override { return std::ssize(names_); }
  int32_t label(int64_t index) const override { return static_cast<int32_t>(index); }
  std::string name(int64_t index) const override { return names_[static_cast<size_t>(index)]; }
  const std::vector<std::string>& class_names() const override { return names_; }
  std::vector<std::byte> bytes(int64_t index) const override {
    ++reads;
    return files_[static_cast<size_t>(index)];
  }

  mutable std::atomic<int64_t> reads{0};

 private:
  std::vector<std::string> names_;
  std::vector<std::vector<std::byte>> files_;
};

// What the orientation of EXIF is stored in, of 16 bits and of one value: tag, type, count.
inline std::vector<std::byte> without_orientation(std::span<const std::byte> bytes) {
  std::vector<std::byte> plain(bytes.begin(), bytes.end());
  const auto patch = [&](std::vector<uint8_t> entry, size_t value) {
    const auto same = [](std::byte a, uint8_t b) { return static_cast<uint8_t>(a) == b; };
    const auto found = std::search(plain.begin(), plain.end(), entry.begin(), entry.end(), same);
    if (found != plain.end()) *(found + static_cast<int64_t>(entry.size() + value)) = std::byte{1};
  };
  patch({0x12, 0x01, 0x03, 0x00, 0x01, 0x00, 0x00, 0x00}, 0);
  patch({0x01, 0x12, 0x00, 0x03, 0x00, 0x00, 0x00, 0x01}, 1);
  return plain;
}

// The stored image, pixel by pixel.
inline std::vector<uint8_t> stored_pixels(const JpegPart& part) {
  const std::vector<std::byte> plain = without_orientation(part.bytes);
  std::vector<uint8_t> pixels(static_cast<size_t>(part.stored_height * part.stored_width * 3));
  data::EncodedImage(plain, "stored")
      .decode({.height = part.stored_height, .width = part.stored_width, .scaled = false}, pixels);
  return pixels;
}

// As the GPU does it, by the same function and libjpeg.
class HostJpegDecoding : public JpegDecoding {
 public:
  JpegsUnderWay decode_jpegs(std::span<const JpegPart> parts, int64_t height, int64_t width,
                             std::shared_ptr<const void> /*files*/) override {
    JpegsUnderWay decoded;
    for (const JpegPart& part : parts) {
      auto& kept = decoded.kept.emplace_back();
      decoded.taken.push_back(++seen % refused_every != 0);
      if (!decoded.taken.back()) continue;
      auto whole = std::make_shared<KeptOnHost>();
      if (part.kept == nullptr) whole->pixels = stored_pixels(part);
      if (part.keep) kept = whole;
      const std::vector<uint8_t>& stored =
          part.kept == nullptr ? whole->pixels : static_cast<const KeptOnHost&>(*part.kept).pixels;
      const LayoutSize pitch = part.stored_width * 3;
      const ResizedPart resized{.pixels = stored.data() + part.top * pitch + part.left * 3,
                                .pitch = pitch,
                                .height = static_cast<int>(part.height),
                                .width = static_cast<int>(part.width),
                                .rows_reversed = part.rows_reversed,
                                .columns_reversed = part.columns_reversed,
                                .transposed = part.transposed};
      for (int64_t pixel = 0; pixel < height * width; ++pixel)
        resize_pixel(resized, static_cast<int>(height), static_cast<int>(width),
                     static_cast<int>(pixel / width), static_cast<int>(pixel % width),
                     part.pixels + 3 * pixel);
    }
    return decoded;
  }
  JpegDecodingTimes decoding_times() const override { return {}; }

  int64_t seen = 0;                   // parts
  int64_t refused_every = 1'000'000;  // of those that are seen

 private:
  struct KeptOnHost : KeptJpeg {
    std::vector<uint8_t> pixels;
  };
};

// The rows of a data set by a decoder, whose pixels lie on the device where there is one, and what it leaves
// by the CPU; without a decoder by the CPU alone.
struct ReadRows {
  std::vector<uint8_t> pixels;
  std::vector<int32_t> labels;
  size_t image_bytes = 0;

  ReadRows(const data::Dataset& dataset, const data::RandomView* view, JpegDecoding* decoding,
           Device* device = nullptr)
      : labels(static_cast<size_t>(dataset.size()), -2),
        image_bytes(static_cast<size_t>(element_count(dataset.image_shape()))) {
    pixels.resize(labels.size() * image_bytes);
    std::vector<bool> taken(labels.size(), false);
    if (decoding != nullptr) taken = decode(dataset, view, *decoding, device);
    for (size_t i = 0; i < labels.size(); ++i) {
      const auto index = static_cast<int64_t>(i);
      if (taken[i]) continue;
      if (view != nullptr) {
        dataset.read_random(index, *view, image(i), labels[i]);
      } else {
        dataset.read(index, image(i), labels[i]);
      }
    }
  }
  std::span<uint8_t> image(size_t row) { return std::span(pixels).subspan(row * image_bytes, image_bytes); }

 private:
  std::vector<bool> decode(const data::Dataset& dataset, const data::RandomView* view, JpegDecoding& decoding,
                           Device* device) {
    const auto bytes = static_cast<int64_t>(pixels.size());
    const std::shared_ptr<void> there = device != nullptr ? device->allocate(bytes) : nullptr;
    auto* const first = device != nullptr ? static_cast<uint8_t*>(there.get()) : pixels.data();
    std::vector<data::DeviceImageRow> rows;
    for (size_t i = 0; i < labels.size(); ++i)
      rows.push_back(
          {.index = static_cast<int64_t>(i), .image = first + i * image_bytes, .label = &labels[i]});
    const JpegsUnderWay decoded = dataset.decode_rows(rows, view, decoding);
    if (decoded.done != nullptr) decoded.done->wait();
    if (device != nullptr) device->copy_to_host(pixels.data(), first, bytes);
    return decoded.taken;
  }
};

struct Difference {
  int largest = 0;
  double mean = 0;
};
inline Difference difference(std::span<const uint8_t> a, std::span<const uint8_t> b) {
  Difference found;
  for (size_t i = 0; i < a.size(); ++i) {
    const int levels = std::abs(a[i] - b[i]);
    found.largest = std::max(found.largest, levels);
    found.mean += static_cast<double>(levels) / static_cast<double>(a.size());
  }
  return found;
}

}  // namespace tessera::testing
