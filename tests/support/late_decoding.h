// A device that makes images as late as it may: when somebody waits for them.
#pragma once

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "tessera/base/error.h"
#include "tessera/data/dataset.h"
#include "tessera/device/common/jpeg_decoding.h"

#include "support/detached_device.h"

namespace tessera::testing {

class LateDevice : public DetachedDevice, public JpegDecoding {
 public:
  std::shared_ptr<void> allocate(int64_t bytes) override {
    ++allocations;
    return DetachedDevice::allocate(bytes);
  }
  std::shared_ptr<void> allocate_pinned(int64_t bytes) override { return DetachedDevice::allocate(bytes); }
  JpegsUnderWay decode_jpegs(std::span<const JpegPart>, int64_t, int64_t,
                             std::shared_ptr<const void>) override {
    fail(ErrorCode::internal, "what a LateDataset reads is no file");
  }
  JpegDecodingTimes decoding_times() const override { return {}; }

  std::atomic<int64_t> allocations{0};  // of its own memory, not of pinned
};

class LateWork : public Event {
 public:
  explicit LateWork(std::function<void()> work) : work_(std::move(work)) {}
  void wait() const override { std::call_once(once_, work_); }

 private:
  std::function<void()> work_;
  mutable std::once_flag once_;
};

// Another data set, of which the device makes every image but those whose numbers are multiples of `left`.
class LateDataset : public data::Dataset {
 public:
  LateDataset(std::shared_ptr<const data::Dataset> whole, int64_t left)
      : whole_(std::move(whole)), left_(left) {}

  int64_t size() const override { return whole_->size(); }
  const Shape& image_shape() const override { return whole_->image_shape(); }
  const std::vector<std::string>& class_names() const override { return whole_->class_names(); }
  int32_t label(int64_t index) const override { return whole_->label(index); }
  void read(int64_t index, std::span<uint8_t> image, int32_t& label) const override {
    ++read_by_host;
    whole_->read(index, image, label);
  }
  JpegsUnderWay decode_rows(std::span<const data::DeviceImageRow> rows, const data::RandomView*,
                            JpegDecoding&) const override {
    JpegsUnderWay result{.taken = std::vector<bool>(rows.size(), false), .done = nullptr};
    std::vector<data::DeviceImageRow> taken;
    for (size_t i = 0; i < rows.size(); ++i) {
      if (rows[i].index % left_ == 0) continue;
      result.taken[i] = true;
      *rows[i].label = whole_->label(rows[i].index);
      std::fill_n(rows[i].image, element_count(image_shape()), uint8_t{0xEE});  // read too early
      taken.push_back(rows[i]);
    }
    ++begun;
    result.done = std::make_shared<LateWork>([this, taken] {
      int32_t label = 0;
      for (const data::DeviceImageRow& row : taken)
        whole_->read(row.index, {row.image, static_cast<size_t>(element_count(image_shape()))}, label);
      ++ended;
    });
    return result;
  }

  mutable std::atomic<int64_t> read_by_host{0};
  mutable std::atomic<int64_t> begun{0};  // batches
  mutable std::atomic<int64_t> ended{0};

 private:
  std::shared_ptr<const data::Dataset> whole_;
  int64_t left_;
};

}  // namespace tessera::testing
