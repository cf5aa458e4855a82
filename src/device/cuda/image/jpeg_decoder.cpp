#include "device/cuda/image/jpeg_decoder.h"

#include <algorithm>
#include <functional>

#include "tessera/base/error.h"
#include "tessera/base/rounding.h"

#include "device/cuda/codegen/generated_kernel.h"
#include "device/cuda/runtime/stream_event.h"
#include "kernels/resized_part.h"

namespace tessera::cuda {
namespace {

constexpr int64_t kMostSessions = 4;  // more do not keep the engines busier
// Files that are decoded at once: enough for all engines, and no more pixels than a few large images have.
constexpr size_t kFilesAtOnce = 64;
constexpr int64_t kPixelsAtOnce = int64_t{1} << 26;
constexpr int kThreads = 256;
constexpr int64_t kChannels = 3;

}  // namespace

std::string resized_parts_source() {
  return "#include \"resized_parts.cuh\"\nusing namespace tessera;\n" +
         entry_text("run", kThreads, "const ResizedPart* parts, unsigned char* y, int height, int width",
                    "  resize_parts(parts, y, height, width);\n");
}

// What one thread at a time decodes with.
class JpegDecoder::Session {
 public:
  Session(Context& context, nvjpegHandle_t handle) : context_(context), handle_(handle) {
    context_.enter();
    check(driver().cuStreamCreate_(&stream_, CU_STREAM_NON_BLOCKING), "creating a stream");
    // Threads that wait leave their core to those that decode on the host.
    done_ = create_event(CU_EVENT_DISABLE_TIMING | CU_EVENT_BLOCKING_SYNC);
    check(nvjpeg().nvjpegJpegStateCreate_(handle_, &state_), "making a decoder's state");
    check(nvjpeg().nvjpegJpegStreamCreate_(handle_, &header_), "making a decoder's header");
  }
  ~Session() {
    driver().cuCtxSetCurrent_(context_.handle());
    if (stream_ != nullptr) driver().cuStreamSynchronize_(stream_);
    if (header_ != nullptr) nvjpeg().nvjpegJpegStreamDestroy_(header_);
    if (state_ != nullptr) nvjpeg().nvjpegJpegStateDestroy_(state_);
    if (stream_ != nullptr) driver().cuStreamDestroy_(stream_);
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  bool takes(const JpegPart& part) {
    int refused = 1;
    return nvjpeg().nvjpegJpegStreamParse_(handle_, file_of(part), part.bytes.size(), 0, 0, header_) ==
               NVJPEG_STATUS_SUCCESS &&
           nvjpeg().nvjpegDecodeBatchedSupported_(handle_, header_, &refused) == NVJPEG_STATUS_SUCCESS &&
           refused == 0;
  }

  // All of them or, where nvJPEG says that one is broken, none.
  bool decode(const std::vector<const JpegPart*>& parts, int64_t height, int64_t width, CUfunction resize) {
    const auto count = static_cast<int64_t>(parts.size());
    int64_t decoded_bytes = 0;
    for (const JpegPart* part : parts) decoded_bytes += bytes_of(*part);
    const int64_t image_bytes = height * width * kChannels;
    const auto on_gpu = [&](int64_t bytes) { return context_.allocate(bytes); };
    const auto pinned = [&](int64_t bytes) { return context_.allocate_pinned(bytes); };
    const auto table_bytes = static_cast<int64_t>(kFilesAtOnce * sizeof(ResizedPart));
    auto* pixels = static_cast<unsigned char*>(decoded_.reserve(decoded_bytes, on_gpu));
    auto* images = static_cast<unsigned char*>(
        images_.reserve(static_cast<int64_t>(kFilesAtOnce) * image_bytes, on_gpu));
    auto* table = static_cast<ResizedPart*>(table_.reserve(table_bytes, on_gpu));
    auto* host_table = static_cast<ResizedPart*>(host_table_.reserve(table_bytes, pinned));

    std::vector<const unsigned char*> files;
    std::vector<size_t> lengths;
    std::vector<nvjpegImage_t> targets;
    for (const JpegPart* part : parts) {
      const int64_t pitch = pitch_of(*part);
      files.push_back(file_of(*part));
      lengths.push_back(part->bytes.size());
      nvjpegImage_t& target = targets.emplace_back();
      target.channel[0] = pixels;
      target.pitch[0] = static_cast<size_t>(pitch);
      host_table[files.size() - 1] = {.pixels = pixels + part->top * pitch + part->left * kChannels,
                                      .pitch = pitch,
                                      .height = static_cast<int>(part->height),
                                      .width = static_cast<int>(part->width),
                                      .rows_reversed = part->rows_reversed,
                                      .columns_reversed = part->columns_reversed,
                                      .transposed = part->transposed};
      pixels += bytes_of(*part);
    }
    if (!decode_whole(files, lengths, targets)) return false;
    check(driver().cuMemcpyHtoDAsync_(address(table), host_table,
                                      static_cast<size_t>(count) * sizeof(ResizedPart), stream_),
          "copying to the GPU");
    launch(resize, table, images, count, height, width);
    copy_back(parts, images, image_bytes);
    record_event(done_, stream_);
    wait_on_host(done_);
    return true;
  }

 private:
  // Memory that grows as it is asked for; its contents do not survive that.
  class Growing {
   public:
    void* reserve(int64_t bytes, const std::function<std::shared_ptr<void>(int64_t bytes)>& allocate) {
      if (bytes > bytes_) {
        memory_.reset();
        bytes_ = 0;
        memory_ = allocate(bytes);
        bytes_ = bytes;
      }
      return memory_.get();
    }

   private:
    std::shared_ptr<void> memory_;
    int64_t bytes_ = 0;
  };

  static const unsigned char* file_of(const JpegPart& part) {
    return reinterpret_cast<const unsigned char*>(part.bytes.data());
  }
  static int64_t pitch_of(const JpegPart& part) { return part.stored_width * kChannels; }
  // Each image begins as memory from the driver does.
  static int64_t bytes_of(const JpegPart& part) {
    return round_up(part.stored_height * pitch_of(part), int64_t{256});
  }

  bool decode_whole(const std::vector<const unsigned char*>& files, const std::vector<size_t>& lengths,
                    std::vector<nvjpegImage_t>& targets) {
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

  void launch(CUfunction resize, const ResizedPart* table, unsigned char* images, int64_t count,
              int64_t height, int64_t width) {
    CUdeviceptr parts = address(table);
    CUdeviceptr target = address(images);
    auto result_height = static_cast<int>(height);
    auto result_width = static_cast<int>(width);
    void* parameters[] = {&parts, &target, &result_height, &result_width};
    CUlaunchConfig config{};
    config.gridDimX = static_cast<unsigned>(blocks_for(height * width, kThreads, context_.traits()));
    config.gridDimY = static_cast<unsigned>(count);
    config.gridDimZ = 1;
    config.blockDimX = kThreads;
    config.blockDimY = 1;
    config.blockDimZ = 1;
    config.hStream = stream_;
    check(driver().cuLaunchKernelEx_(&config, resize, parameters, nullptr), "resizing decoded images");
  }

  // Rows of a batch that follow each other in one copy.
  void copy_back(const std::vector<const JpegPart*>& parts, const unsigned char* images,
                 int64_t image_bytes) {
    for (size_t first = 0, next = 0; first < parts.size(); first = next) {
      next = first + 1;
      while (next < parts.size() && parts[next]->pixels == parts[next - 1]->pixels + image_bytes) ++next;
      check(driver().cuMemcpyDtoHAsync_(parts[first]->pixels,
                                        address(images + static_cast<int64_t>(first) * image_bytes),
                                        (next - first) * static_cast<size_t>(image_bytes), stream_),
            "copying from the GPU");
    }
  }

  Context& context_;
  nvjpegHandle_t handle_;
  CUstream stream_ = nullptr;
  StreamEvent done_;
  nvjpegJpegState_t state_ = nullptr;
  nvjpegJpegStream_t header_ = nullptr;
  size_t prepared_ = 0;  // how many files the state is prepared for
  Growing decoded_;      // whole images
  Growing images_;       // [kFilesAtOnce, H, W, 3]
  Growing table_;        // ResizedPart [kFilesAtOnce]
  Growing host_table_;
};

JpegDecoder::JpegDecoder(Context& context)
    : context_(context), module_(context.modules().get(resized_parts_source())) {
  context_.enter();
  // Cards of data centers have engines for it; on others the multiprocessors do the work.
  const auto open = [&](nvjpegBackend_t backend) {
    return nvjpeg().nvjpegCreateEx_(backend, nullptr, nullptr, NVJPEG_FLAGS_UPSAMPLING_WITH_INTERPOLATION,
                                    &handle_);
  };
  if (open(NVJPEG_BACKEND_HARDWARE) == NVJPEG_STATUS_SUCCESS) return;
  check(open(NVJPEG_BACKEND_GPU_HYBRID), "opening a decoder");
}

JpegDecoder::~JpegDecoder() = default;

std::vector<bool> JpegDecoder::decode(std::span<const JpegPart> parts, int64_t height, int64_t width) {
  context_.enter();
  const CUfunction resize = module_->function("run");
  std::vector<bool> decoded(parts.size(), false);
  if (parts.empty()) return decoded;
  std::unique_ptr<Session> session = take();
  std::vector<const JpegPart*> chunk;
  std::vector<size_t> places;
  int64_t pixels = 0;
  const auto flush = [&] {
    if (!chunk.empty() && session->decode(chunk, height, width, resize)) {
      for (const size_t place : places) decoded[place] = true;
    }
    chunk.clear();
    places.clear();
    pixels = 0;
  };
  try {
    for (size_t i = 0; i < parts.size(); ++i) {
      const int64_t own = parts[i].stored_height * parts[i].stored_width;
      if (own > kPixelsAtOnce || !session->takes(parts[i])) continue;
      if (chunk.size() == kFilesAtOnce || pixels + own > kPixelsAtOnce) flush();
      chunk.push_back(&parts[i]);
      places.push_back(i);
      pixels += own;
    }
    flush();
  } catch (...) {
    // What it has enqueued may still write: its destructor waits for that.
    session.reset();
    give_back(nullptr);
    throw;
  }
  give_back(std::move(session));
  return decoded;
}

std::unique_ptr<JpegDecoder::Session> JpegDecoder::take() {
  std::unique_lock lock(mutex_);
  returned_.wait(lock, [&] { return !idle_.empty() || sessions_ < kMostSessions; });
  if (!idle_.empty()) {
    std::unique_ptr<Session> session = std::move(idle_.back());
    idle_.pop_back();
    return session;
  }
  auto session = std::make_unique<Session>(context_, handle_);
  ++sessions_;
  return session;
}

void JpegDecoder::give_back(std::unique_ptr<Session> session) {
  {
    const std::lock_guard lock(mutex_);
    if (session == nullptr) {
      --sessions_;
    } else {
      idle_.push_back(std::move(session));
    }
  }
  returned_.notify_one();
}

}  // namespace tessera::cuda
