// Some JPEG files at once on a GPU: nvJPEG's batch, and the kernel that cuts, turns and resizes what it
// decodes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "tessera/device/common/jpeg_decoding.h"

#include "device/cuda/image/nvjpeg_library.h"
#include "device/cuda/runtime/context.h"
#include "device/cuda/runtime/point_of_work.h"
#include "device/cuda/runtime/stream_event.h"
#include "kernels/resized_part.h"

namespace tessera::cuda {

// A whole image in the GPU's memory.
struct KeptPixels : KeptJpeg {
  std::shared_ptr<unsigned char> pixels;       // [H, W, 3]
  std::shared_ptr<const PointOfWork> decoded;  // when they are there
};

// Memory that is given out in pieces; the last of them frees it. A block of the pool is cleared, which is
// waited for: too slow for each image.
class PieceMemory {
 public:
  explicit PieceMemory(Context& context) : context_(context) {}
  // Throws Error(out_of_memory).
  std::shared_ptr<unsigned char> take(int64_t bytes);

 private:
  Context& context_;
  std::shared_ptr<void> block_;
  int64_t bytes_ = 0;  // of the block
  int64_t taken_ = 0;
};

// Has a stream and buffers of its own, for one thread at a time. The stream's priority is the least there is:
// executables, which wait for what is decoded in the end, get the multiprocessors first.
class ChunkDecoder {
 public:
  // Files that are given at once: enough for all engines, and no more pixels than a few large images have.
  static constexpr size_t kFiles = 64;
  static constexpr int64_t kPixels = int64_t{1} << 26;
  static constexpr size_t kKeptParts = 256;

  // `resize`: the kernel of resized_parts_source(). The first two must outlive this.
  ChunkDecoder(Context& context, nvjpegHandle_t handle, CUfunction resize);
  ~ChunkDecoder();
  ChunkDecoder(const ChunkDecoder&) = delete;
  ChunkDecoder& operator=(const ChunkDecoder&) = delete;

  // Until what was given is done; its files are let go.
  void wait();
  // After wait(). All of the parts or, where nvJPEG says that one is broken, none: their pixels stay as they
  // are then. The images that are to be kept, null for the others, without their `decoded`.
  std::optional<std::vector<std::shared_ptr<KeptPixels>>> decode(const std::vector<const JpegPart*>& parts,
                                                                 int64_t height, int64_t width,
                                                                 std::shared_ptr<const void> files);
  // After wait(). Parts of images that are kept, at most kKeptParts.
  void cut(const std::vector<const JpegPart*>& parts, int64_t height, int64_t width);

  CUstream stream() const { return stream_; }

 private:
  // Memory that grows as it is asked for; its contents do not survive that.
  class Growing {
   public:
    void* reserve(int64_t bytes, const std::function<std::shared_ptr<void>(int64_t bytes)>& allocate);

   private:
    std::shared_ptr<void> memory_;
    int64_t bytes_ = 0;
  };

  bool decode_whole(const std::vector<const JpegPart*>& parts, std::vector<nvjpegImage_t>& targets);
  // Of the parts, from where their images begin.
  void resize(const std::vector<const JpegPart*>& parts, const std::vector<unsigned char*>& images,
              int64_t height, int64_t width);

  Context& context_;
  nvjpegHandle_t handle_;
  CUfunction resize_;
  CUstream stream_ = nullptr;
  StreamEvent done_;  // what was given last
  nvjpegJpegState_t state_ = nullptr;
  size_t prepared_ = 0;  // how many files the state is prepared for
  Growing decoded_;      // whole images
  PieceMemory kept_memory_;
  std::shared_ptr<void> table_;  // PlacedPart [kKeptParts]
  std::shared_ptr<void> host_table_;
  std::shared_ptr<const void> files_;                    // that are read
  std::vector<std::shared_ptr<const KeptJpeg>> images_;  // that are written or read
};

}  // namespace tessera::cuda
