// JPEG files of a batch on the GPU: decoded by nvJPEG, and cut and resized by a kernel of ours.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "tessera/device/common/jpeg_decoding.h"

#include "device/cuda/codegen/module_cache.h"
#include "device/cuda/image/nvjpeg_library.h"
#include "device/cuda/runtime/context.h"

namespace tessera::cuda {

// The text of the kernel, whose only entry is `run`.
std::string resized_parts_source();

// A part of a context, for any number of threads: each that decodes has a stream and buffers of its own for
// as long, and waits while too many others have.
class JpegDecoder {
 public:
  // Throws Error(unsupported) where there is no nvJPEG.
  explicit JpegDecoder(Context& context);
  ~JpegDecoder();
  JpegDecoder(const JpegDecoder&) = delete;
  JpegDecoder& operator=(const JpegDecoder&) = delete;

  // As JpegDecoding::decode_jpegs().
  std::vector<bool> decode(std::span<const JpegPart> parts, int64_t height, int64_t width);

 private:
  class Session;
  std::unique_ptr<Session> take();
  void give_back(std::unique_ptr<Session> session);

  Context& context_;
  std::shared_ptr<Module> module_;
  nvjpegHandle_t handle_ = nullptr;  // never destroyed: at the end of the process the driver may be gone
  std::mutex mutex_;                 // guards what follows
  std::condition_variable returned_;
  std::vector<std::unique_ptr<Session>> idle_;
  int64_t sessions_ = 0;
};

}  // namespace tessera::cuda
