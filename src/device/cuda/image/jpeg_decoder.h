// JPEG files of a batch on the GPU: decoded by nvJPEG, and cut and resized by a kernel of ours.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <string>

#include "tessera/device/common/jpeg_decoding.h"

#include "device/cuda/codegen/module_cache.h"
#include "device/cuda/image/nvjpeg_library.h"
#include "device/cuda/runtime/context.h"

namespace tessera::cuda {

inline constexpr int kResizingThreads = 256;  // of a block

// The text of the kernel, whose only entry is `run`.
std::string resized_parts_source();

// A part of a context, for any number of threads: each that gives it files has decoders of its own for as
// long, and waits while too many others have.
class JpegDecoder {
 public:
  // Throws Error(unsupported) where there is no nvJPEG.
  explicit JpegDecoder(Context& context);
  ~JpegDecoder();
  JpegDecoder(const JpegDecoder&) = delete;
  JpegDecoder& operator=(const JpegDecoder&) = delete;

  // As JpegDecoding::decode_jpegs().
  JpegsUnderWay decode(std::span<const JpegPart> parts, int64_t height, int64_t width,
                       std::shared_ptr<const void> files);
  JpegDecodingTimes times() const;

 private:
  class Session;
  struct Times {
    std::atomic<int64_t> files{0};
    std::atomic<double> turn{0};
    std::atomic<double> device{0};
    std::atomic<double> parsing{0};
    std::atomic<double> giving{0};
  };
  std::unique_ptr<Session> take();
  void give_back(std::unique_ptr<Session> session);

  Context& context_;
  std::shared_ptr<Module> module_;
  nvjpegHandle_t handle_ = nullptr;  // never destroyed: at the end of the process the driver may be gone
  Times times_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable returned_;
  std::deque<std::unique_ptr<Session>> idle_;  // that which was given back longest ago first
  int64_t sessions_ = 0;
};

}  // namespace tessera::cuda
