// Batches whose images a device makes in its own memory.
#include "tessera/data/device_rows.h"

#include <algorithm>
#include <thread>

#include <gtest/gtest.h>

#include "tessera/data/encoded.h"
#include "tessera/data/loader.h"

#include "support/expect_error.h"
#include "support/late_decoding.h"

namespace tessera::data {
namespace {

using testing::LateDataset;
using testing::LateDevice;

constexpr int64_t kNone = 1'000'000;  // no image is left to the host but the first

std::shared_ptr<const Dataset> synthetic(int64_t size) {
  return std::make_shared<SyntheticDataset>(
      SyntheticOptions{.size = size, .image_shape = {6, 5, 3}, .classes = 4, .seed = 1});
}

std::vector<Batch> collect(const std::unique_ptr<Stream>& stream) {
  std::vector<Batch> batches;
  while (std::optional<Batch> batch = stream->next()) batches.push_back(std::move(*batch));
  return batches;
}

void expect_same(const Batch& made, const Batch& expected) {
  EXPECT_EQ(made.after, expected.after);
  EXPECT_EQ(made.samples, expected.samples);
  EXPECT_EQ(made.indices, expected.indices);
  EXPECT_TRUE(made.device_fields.contains("images"));
  EXPECT_EQ(made.fields.size(), 1U);
  const Batch here = made.on_host();
  ASSERT_EQ(here.fields.size(), expected.fields.size());
  for (const auto& [name, tensor] : expected.fields)
    EXPECT_TRUE(here.fields.at(name).identical(tensor)) << name;
}

// Whoever makes an image, in how many threads, and from where on: the last batch is filled with zeros.
TEST(DeviceRows, BatchesAreThoseOfTheHost) {
  const auto whole = synthetic(91);
  for (const bool augmented : {false, true}) {
    ImageExampleOptions examples{.padding_label = -7};
    if (augmented) examples.augmentation = {.crop_padding = 1, .erase_probability = 0.5};
    const BatchOptions batching{.batch_size = 8, .drop_last = false, .seed = 3};
    const std::vector<Batch> expected = collect(Loader(whole, batching, examples).open({.epoch = 5}));
    for (const int64_t left : {int64_t{1}, int64_t{3}, kNone}) {
      for (const int64_t workers : {0, 1, 5}) {
        const auto late = std::make_shared<LateDataset>(whole, left);
        BatchOptions options = batching;
        options.workers = workers;
        examples.decode = DecodePlace::gpu;
        const Loader loader(late, options, examples);
        const auto memory = std::make_shared<BatchMemory>(std::make_shared<LateDevice>());
        const int64_t first = workers == 1 ? 4 : 0;
        const auto stream = loader.open_into(memory, {.epoch = 5, .batch = first});
        auto number = static_cast<size_t>(first);
        while (const std::optional<Batch> batch = stream->next()) expect_same(*batch, expected.at(number++));
        EXPECT_EQ(number, expected.size());
        if (left == kNone) {
          EXPECT_LE(late->read_by_host, 1);
        }
        EXPECT_EQ(late->ended, late->begun);
      }
    }
  }
}

TEST(DeviceRows, ForNoDeviceAllIsTheHosts) {
  const auto late = std::make_shared<LateDataset>(synthetic(20), kNone);
  const Loader loader(late, {.batch_size = 10, .shuffle = false}, {.decode = DecodePlace::gpu});
  for (const Batch& batch : collect(loader.open({}))) EXPECT_TRUE(batch.device_fields.empty());
  EXPECT_EQ(late->begun, 0);
}

// As many blocks as batches are ready or being made, and those that somebody holds.
TEST(DeviceRows, MemoryIsBounded) {
  const auto device = std::make_shared<LateDevice>();
  const Loader loader(std::make_shared<LateDataset>(synthetic(400), kNone),
                      {.batch_size = 4, .workers = 3, .prefetch = 5}, {.decode = DecodePlace::gpu});
  const auto memory = std::make_shared<BatchMemory>(device);
  for (int64_t epoch = 0; epoch < 3; ++epoch) {
    const auto stream = loader.open_into(memory, {.epoch = epoch});
    while (const std::optional<Batch> batch = stream->next()) {
    }
  }
  EXPECT_LE(device->allocations, 5 + 1);
}

// What the device was given is waited for before its memory serves others, also when nobody wants it any
// more.
TEST(DeviceRows, AStreamMayEndWhileTheDeviceWorks) {
  const auto late = std::make_shared<LateDataset>(synthetic(400), kNone);
  const Loader loader(late, {.batch_size = 4, .workers = 3}, {.decode = DecodePlace::gpu});
  const auto memory = std::make_shared<BatchMemory>(std::make_shared<LateDevice>());
  {
    const auto stream = loader.open_into(memory, {});
    const std::optional<Batch> batch = stream->next();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  EXPECT_GT(late->begun, 0);
  EXPECT_EQ(late->ended, late->begun);
}

class FaultyDataset : public SyntheticDataset {
 public:
  FaultyDataset() : SyntheticDataset({.size = 40, .image_shape = {2, 2, 1}, .classes = 4}) {}
  void read(int64_t index, std::span<uint8_t> image, int32_t& label) const override {
    if (index == 30) fail(ErrorCode::invalid_file, "image {} is broken", index);
    SyntheticDataset::read(index, image, label);
  }
};

TEST(DeviceRows, WhatTheHostCannotReadArrivesInItsTurn) {
  for (const int64_t workers : {0, 2}) {
    const auto late = std::make_shared<LateDataset>(std::make_shared<FaultyDataset>(), 6);
    const Loader loader(late, {.batch_size = 4, .shuffle = false, .workers = workers},
                        {.decode = DecodePlace::gpu});
    {
      const auto memory = std::make_shared<BatchMemory>(std::make_shared<LateDevice>());
      const auto stream = loader.open_into(memory, {});
      for (int64_t i = 0; i < 7; ++i) ASSERT_EQ(stream->next()->after.batch, i + 1);
      EXPECT_ERROR(stream->next(), ErrorCode::invalid_file, "image 30 is broken");
    }
    EXPECT_EQ(late->ended, late->begun);
  }
}

// Takes every file.
class TakesAll : public JpegDecoding {
 public:
  JpegsUnderWay decode_jpegs(std::span<const JpegPart> parts, int64_t, int64_t,
                             std::shared_ptr<const void>) override {
    return {.taken = std::vector<bool>(parts.size(), true), .done = nullptr};
  }
  JpegDecodingTimes decoding_times() const override { return {}; }
};

class EqualFiles : public EncodedSamples {
 public:
  int64_t size() const override { return 400; }
  int32_t label(int64_t /*index*/) const override { return 0; }
  std::string name(int64_t /*index*/) const override { return "equal"; }
  const std::vector<std::string>& class_names() const override { return classes_; }
  std::vector<std::byte> bytes(int64_t /*index*/) const override { return file_; }

 private:
  std::vector<std::string> classes_{"all"};
  std::vector<std::byte> file_ = encode_jpeg(std::vector<uint8_t>(16 * 16 * 3, 100), {16, 16, 3});
};

// By its number alone, and evenly over any that follow each other.
TEST(DeviceRows, TheHostsShareIsOfTheSameImagesInEveryOrder) {
  const auto samples = std::make_shared<EqualFiles>();
  for (const double share : {0.0, 0.2, 0.5, 1.0}) {
    const EncodedDataset dataset(samples, {.image_shape = {8, 8, 3}, .host_share = share});
    TakesAll decoding;
    std::vector<int32_t> labels(400);
    const auto taken_of = [&](bool backward) {
      std::vector<DeviceImageRow> rows;
      for (int64_t i = 0; i < 400; ++i)
        rows.push_back({.index = backward ? 399 - i : i, .label = &labels[static_cast<size_t>(i)]});
      std::vector<bool> taken = dataset.decode_rows(rows, nullptr, decoding).taken;
      if (backward) std::reverse(taken.begin(), taken.end());
      return taken;
    };
    const std::vector<bool> taken = taken_of(false);
    EXPECT_EQ(taken_of(true), taken);
    for (int64_t first = 0; first < 400; first += 100) {
      const auto part = taken.begin() + first;
      EXPECT_NEAR(static_cast<double>(std::count(part, part + 100, false)), 100 * share, 2) << share << first;
    }
    const std::vector<std::string> remarks = dataset.remarks();
    ASSERT_EQ(remarks.size(), share > 0 ? 1U : 0U);
    if (share > 0) {
      EXPECT_NE(remarks[0].find("as its share of"), std::string::npos);
    }
  }
  EXPECT_ERROR(EncodedDataset(samples, {.image_shape = {8, 8, 3}, .host_share = 1.5}),
               ErrorCode::invalid_argument, "the CPU's share of a device's images is 1.5");
}

TEST(DeviceRows, ADeviceThatMakesNoImagesSaysSo) {
  const Loader loader(synthetic(20), {.batch_size = 4, .workers = 0}, {.decode = DecodePlace::gpu});
  const auto memory = std::make_shared<BatchMemory>(Device::reference());
  EXPECT_ERROR(loader.open_into(memory, {})->next(), ErrorCode::unsupported, "decodes no images",
               "data.decode");
}

}  // namespace
}  // namespace tessera::data
