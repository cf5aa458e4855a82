// Device memory between two bands that nothing may write to: what a kernel writes before or after its
// buffers is found, and what it reads there is NaN in every floating type. It is aligned as little as memory
// plans allow.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "tessera/base/tensor.h"
#include "tessera/compile/device.h"

namespace tessera::testing {

// The byte of which memory without contents consists: NaN in every floating type and -1 as a number.
inline constexpr int kNaNPoison = 0xff;
// Another one, a large finite number in every type: what of it gets into a result differs from the first.
inline constexpr int kFinitePoison = 0x5a;

class GuardedMemory {
 public:
  GuardedMemory(Device& device, int64_t bytes, int poison)
      : device_(device),
        bytes_(bytes),
        front_bytes_(kBandBytes + device.memory_alignment()),
        memory_(device.allocate(front_bytes_ + bytes + kBandBytes)) {
    const std::shared_ptr<Queue> queue = device.queue();
    queue->fill(memory_.get(), kBandByte, front_bytes_);
    if (bytes > 0) queue->fill(get(), poison, bytes);
    queue->fill(after(), kBandByte, kBandBytes);
    queue->synchronize();
  }
  GuardedMemory(Device& device, const Tensor& contents)
      : GuardedMemory(device, static_cast<int64_t>(contents.bytes()), kNaNPoison) {
    device.copy_from_host(get(), contents.raw(), bytes_);
  }

  void* get() const { return static_cast<char*>(memory_.get()) + front_bytes_; }

  // Which bytes of a band were written to; "" when none was. The device must have finished.
  std::string damage() const {
    std::string result;
    for (const bool before : {true, false}) {
      const int64_t bytes = before ? front_bytes_ : kBandBytes;
      std::vector<unsigned char> band(static_cast<size_t>(bytes));
      device_.copy_to_host(band.data(), before ? memory_.get() : after(), bytes);
      const auto written = [](unsigned char byte) { return byte != kBandByte; };
      const auto first = std::find_if(band.begin(), band.end(), written) - band.begin();
      if (first == bytes) continue;
      const auto last = band.rend() - std::find_if(band.rbegin(), band.rend(), written) - 1;
      if (before) {
        result +=
            fmt::format("bytes {} to {} before its {}; ", last - front_bytes_, first - front_bytes_, bytes_);
      } else {
        result += fmt::format("bytes {} to {} of {}; ", bytes_ + first, bytes_ + last, bytes_);
      }
    }
    return result;
  }

 private:
  static constexpr int64_t kBandBytes = int64_t{16} << 10;  // a multiple of any alignment
  static constexpr unsigned char kBandByte = kNaNPoison;

  void* after() const { return static_cast<char*>(get()) + bytes_; }

  Device& device_;
  int64_t bytes_;
  int64_t front_bytes_;
  std::shared_ptr<void> memory_;
};

}  // namespace tessera::testing
