#include "device/cuda/image/jpeg_chunk.h"

#include <algorithm>
#include <set>
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

constexpr auto kTableBytes = static_cast<int64_t>(ChunkDecoder::kKeptParts * sizeof(PlacedPart));
static_assert(ChunkDecoder::kFiles <= ChunkDecoder::kKeptParts);

}  // namespace

std::shared_ptr<unsigned char> PieceMemory::take(int64_t bytes) {
  constexpr int64_t kUsualBlock = int64_t{16} << 20;
  if (bytes > bytes_ - taken_) {
    block_ = context_.allocate(std::max(bytes, kUsualBlock));
    bytes_ = std::max(bytes, kUsualBlock);
    taken_ = 0;
  }
  std::shared_ptr<unsigned char> piece(block_, static_cast<unsigned char*>(block_.get()) + taken_);
  taken_ += bytes;
  return piece;
}

ChunkDecoder::ChunkDecoder(Context& context, nvjpegHandle_t handle, CUfunction resize)
    : context_(context),
      handle_(handle),
      resize_(resize),
      kept_memory_(context),
      table_(context.allocate(kTableBytes)),
      host_table_(context.allocate_pinned(kTableBytes)) {
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
  images_.clear();
}

std::optional<std::vector<std::shared_ptr<KeptPixels>>> ChunkDecoder::decode(
    const std::vector<const JpegPart*>& parts, int64_t height, int64_t width,
    std::shared_ptr<const void> files) {
  files_ = std::move(files);
  int64_t passing_bytes = 0;
  for (const JpegPart* part : parts) passing_bytes += part->keep ? 0 : bytes_of(*part);
  auto* passing = static_cast<unsigned char*>(
      decoded_.reserve(passing_bytes, [&](int64_t bytes) { return context_.allocate(bytes); }));
  std::vector<std::shared_ptr<KeptPixels>> kept;
  std::vector<unsigned char*> images;
  std::vector<nvjpegImage_t> targets;
  for (const JpegPart* part : parts) {
    auto& own = kept.emplace_back();
    if (part->keep) {
      own = std::make_shared<KeptPixels>();
      own->pixels = kept_memory_.take(bytes_of(*part));
      images_.push_back(own);
      images.push_back(own->pixels.get());
    } else {
      images.push_back(passing);
      passing += bytes_of(*part);
    }
    nvjpegImage_t& target = targets.emplace_back();
    target.channel[0] = images.back();
    target.pitch[0] = static_cast<size_t>(pitch_of(*part));
  }
  const bool decoded = decode_whole(parts, targets);
  if (decoded) resize(parts, images, height, width);
  record_event(done_, stream_);
  if (!decoded) return std::nullopt;
  return kept;
}

void ChunkDecoder::cut(const std::vector<const JpegPart*>& parts, int64_t height, int64_t width) {
  std::vector<unsigned char*> images;
  std::set<const PointOfWork*> awaited;
  for (const JpegPart* part : parts) {
    const auto& kept = static_cast<const KeptPixels&>(*part->kept);
    images_.push_back(part->kept);
    images.push_back(kept.pixels.get());
    if (awaited.insert(kept.decoded.get()).second) wait_on_stream(stream_, kept.decoded->event());
  }
  resize(parts, images, height, width);
  record_event(done_, stream_);
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

void ChunkDecoder::resize(const std::vector<const JpegPart*>& parts,
                          const std::vector<unsigned char*>& images, int64_t height, int64_t width) {
  auto* const host_table = static_cast<PlacedPart*>(host_table_.get());
  for (size_t i = 0; i < parts.size(); ++i) {
    const JpegPart& part = *parts[i];
    const int64_t pitch = pitch_of(part);
    host_table[i] = {.part = {.pixels = images[i] + part.top * pitch + part.left * kChannels,
                              .pitch = pitch,
                              .height = static_cast<int>(part.height),
                              .width = static_cast<int>(part.width),
                              .rows_reversed = part.rows_reversed,
                              .columns_reversed = part.columns_reversed,
                              .transposed = part.transposed},
                     .target = part.pixels};
  }
  CUdeviceptr table = address(table_.get());
  check(driver().cuMemcpyHtoDAsync_(table, host_table, parts.size() * sizeof(PlacedPart), stream_),
        "copying to the GPU");
  auto result_height = static_cast<int>(height);
  auto result_width = static_cast<int>(width);
  void* parameters[] = {&table, &result_height, &result_width};
  CUlaunchConfig config{};
  config.gridDimX = static_cast<unsigned>(blocks_for(height * width, kResizingThreads, context_.traits()));
  config.gridDimY = static_cast<unsigned>(parts.size());
  config.gridDimZ = 1;
  config.blockDimX = kResizingThreads;
  config.blockDimY = 1;
  config.blockDimZ = 1;
  config.hStream = stream_;
  check(driver().cuLaunchKernelEx_(&config, resize_, parameters, nullptr), "resizing decoded images");
}

}  // namespace tessera::cuda
