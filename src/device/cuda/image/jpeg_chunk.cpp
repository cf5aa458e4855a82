#include "device/cuda/image/jpeg_chunk.h"

#include <utility>

#include "tessera/base/rounding.h"

#include "device/cuda/codegen/generated_kernel.h"
#include "device/cuda/image/jpeg_decoder.h"

namespace tessera::cuda {
namespace {

constexpr int64_t kChannels = 3;

const unsigned char* file_of(const JpegPart& part) {
  return reinterpret_cast<const unsigned char*>(part.bytes.data());
}

int64_t pitch_of(const JpegPart& part) {
  return part.stored_width * kChannels;
}

// Each image begins as memory from the driver does.
int64_t bytes_of(const JpegPart& part) {
  return round_up(part.stored_height * pitch_of(part), int64_t{256});
}

}  // namespace

ChunkDecoder::ChunkDecoder(Context& context, nvjpegHandle_t handle, CUfunction resize)
    : context_(context), handle_(handle), resize_(resize) {
  context_.enter();
  check(driver().cuStreamCreate_(&stream_, CU_STREAM_NON_BLOCKING), "creating a stream");
  // Threads that wait leave their core to those that decode on the host.
  done_ = create_event(CU_EVENT_DISABLE_TIMING | CU_EVENT_BLOCKING_SYNC);
  check(nvjpeg().nvjpegJpegStateCreate_(handle_, &state_), "making a decoder's state");
}

ChunkDecoder::~ChunkDecoder() {
  driver().cuCtxSetCurrent_(context_.handle());
  if (stream_ != nullptr) driver().cuStreamSynchronize_(stream_);
  if (state_ != nullptr) nvjpeg().nvjpegJpegStateDestroy_(state_);
  if (stream_ != nullptr) driver().cuStreamDestroy_(stream_);
}

void ChunkDecoder::wait() {
  wait_on_host(done_);
  files_.reset();
}

bool ChunkDecoder::give(const std::vector<const JpegPart*>& parts, int64_t height, int64_t width,
                        std::shared_ptr<const void> files) {
  files_ = std::move(files);
  int64_t decoded_bytes = 0;
  for (const JpegPart* part : parts) decoded_bytes += bytes_of(*part);
  const auto on_gpu = [&](int64_t bytes) { return context_.allocate(bytes); };
  const auto pinned = [&](int64_t bytes) { return context_.allocate_pinned(bytes); };
  const auto table_bytes = static_cast<int64_t>(kFiles * sizeof(PlacedPart));
  auto* pixels = static_cast<unsigned char*>(decoded_.reserve(decoded_bytes, on_gpu));
  auto* table = static_cast<PlacedPart*>(table_.reserve(table_bytes, on_gpu));
  auto* host_table = static_cast<PlacedPart*>(host_table_.reserve(table_bytes, pinned));

  std::vector<nvjpegImage_t> targets;
  for (const JpegPart* part : parts) {
    const int64_t pitch = pitch_of(*part);
    host_table[targets.size()] = {.part = {.pixels = pixels + part->top * pitch + part->left * kChannels,
                                           .pitch = pitch,
                                           .height = static_cast<int>(part->height),
                                           .width = static_cast<int>(part->width),
                                           .rows_reversed = part->rows_reversed,
                                           .columns_reversed = part->columns_reversed,
                                           .transposed = part->transposed},
                                  .target = part->pixels};
    nvjpegImage_t& target = targets.emplace_back();
    target.channel[0] = pixels;
    target.pitch[0] = static_cast<size_t>(pitch);
    pixels += bytes_of(*part);
  }
  const bool decoded = decode_whole(parts, targets);
  if (decoded) {
    check(driver().cuMemcpyHtoDAsync_(address(table), host_table, parts.size() * sizeof(PlacedPart), stream_),
          "copying to the GPU");
    resize(table, std::ssize(parts), height, width);
  }
  record_event(done_, stream_);
  return decoded;
}

// A quarter more than is asked for, so that it grows seldom: the pool of the GPU may wait for all queues.
void* ChunkDecoder::Growing::reserve(int64_t bytes,
                                     const std::function<std::shared_ptr<void>(int64_t bytes)>& allocate) {
  if (bytes > bytes_) {
    memory_.reset();
    bytes_ = 0;
    const int64_t with_more = bytes + bytes / 4;
    memory_ = allocate(with_more);
    bytes_ = with_more;
  }
  return memory_.get();
}

bool ChunkDecoder::decode_whole(const std::vector<const JpegPart*>& parts,
                                std::vector<nvjpegImage_t>& targets) {
  std::vector<const unsigned char*> files;
  std::vector<size_t> lengths;
  for (const JpegPart* part : parts) {
    files.push_back(file_of(*part));
    lengths.push_back(part->bytes.size());
  }
  if (files.size() != prepared_) {
    prepared_ = 0;
    check(nvjpeg().nvjpegDecodeBatchedInitialize_(handle_, state_, static_cast<int>(files.size()), 1,
                                                  NVJPEG_OUTPUT_RGBI),
          "preparing a batch");
    prepared_ = files.size();
  }
  const nvjpegStatus_t status =
      nvjpeg().nvjpegDecodeBatched_(handle_, state_, files.data(), lengths.data(), targets.data(), stream_);
  if (status == NVJPEG_STATUS_SUCCESS) return true;
  prepared_ = 0;
  context_.check_sound();
  if (status == NVJPEG_STATUS_ALLOCATOR_FAILURE) check(status, "decoding a batch");
  return false;
}

void ChunkDecoder::resize(const PlacedPart* table, int64_t count, int64_t height, int64_t width) {
  CUdeviceptr parts = address(table);
  auto result_height = static_cast<int>(height);
  auto result_width = static_cast<int>(width);
  void* parameters[] = {&parts, &result_height, &result_width};
  CUlaunchConfig config{};
  config.gridDimX = static_cast<unsigned>(blocks_for(height * width, kResizingThreads, context_.traits()));
  config.gridDimY = static_cast<unsigned>(count);
  config.gridDimZ = 1;
  config.blockDimX = kResizingThreads;
  config.blockDimY = 1;
  config.blockDimZ = 1;
  config.hStream = stream_;
  check(driver().cuLaunchKernelEx_(&config, resize_, parameters, nullptr), "resizing decoded images");
}

}  // namespace tessera::cuda
