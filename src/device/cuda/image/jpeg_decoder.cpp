#include "device/cuda/image/jpeg_decoder.h"

#include <array>
#include <utility>
#include <vector>

#include "tessera/base/clock.h"

#include "device/cuda/codegen/generated_kernel.h"
#include "device/cuda/image/jpeg_chunk.h"
#include "device/cuda/runtime/point_of_work.h"

namespace tessera::cuda {
namespace {

// nvJPEG has streams of its own for each. Two keep the engines busy, and more share ways to the card with the
// training step, whose launches then come before theirs (docs/experiments/074).
constexpr int64_t kMostSessions = 2;

// Adds the time of its scope.
class Stopwatch {
 public:
  explicit Stopwatch(std::atomic<double>& seconds) : seconds_(seconds), begin_(Clock::now()) {}
  ~Stopwatch() { seconds_ += seconds_since(begin_); }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

 private:
  std::atomic<double>& seconds_;
  Clock::time_point begin_;
};

}  // namespace

std::string resized_parts_source() {
  return "#include \"resized_parts.cuh\"\nusing namespace tessera;\n" +
         entry_text("run", kResizingThreads, "const PlacedPart* parts, int height, int width",
                    "  resize_parts(parts, height, width);\n");
}

// What one thread at a time decodes with. It may be given to another while the GPU still works: its decoder
// is waited for when it is needed.
class JpegDecoder::Session {
 public:
  Session(Context& context, nvjpegHandle_t handle, CUfunction resize, Times& times)
      : context_(context), handle_(handle), times_(times), decoder_(context, handle, resize) {
    check(nvjpeg().nvjpegJpegStreamCreate_(handle_, &header_), "making a decoder's header");
  }
  ~Session() { nvjpeg().nvjpegJpegStreamDestroy_(header_); }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  JpegsUnderWay decode(std::span<const JpegPart> parts, int64_t height, int64_t width,
                       const std::shared_ptr<const void>& files) {
    JpegsUnderWay result{.taken = std::vector<bool>(parts.size(), false), .done = nullptr};
    std::vector<std::shared_ptr<KeptPixels>> kept(parts.size());
    Chunk files_now;
    Chunk kept_now;
    const auto decode_now = [&] {
      if (files_now.parts.empty()) return;
      wait();
      const Stopwatch stopwatch(times_.giving);
      if (const auto decoded = decoder_.decode(files_now.parts, height, width, files)) {
        for (size_t i = 0; i < decoded->size(); ++i) {
          result.taken[files_now.places[i]] = true;
          kept[files_now.places[i]] = (*decoded)[i];
        }
      }
      files_now = {};
    };
    const auto cut_now = [&] {
      if (kept_now.parts.empty()) return;
      wait();
      const Stopwatch stopwatch(times_.giving);
      decoder_.cut(kept_now.parts, height, width);
      for (const size_t place : kept_now.places) result.taken[place] = true;
      kept_now = {};
    };
    for (size_t i = 0; i < parts.size(); ++i) {
      if (parts[i].kept != nullptr) {
        if (kept_now.parts.size() == ChunkDecoder::kKeptParts) cut_now();
        kept_now.add(parts[i], i);
        continue;
      }
      const int64_t own = parts[i].stored_height * parts[i].stored_width;
      if (own > ChunkDecoder::kPixels || !takes(parts[i])) continue;
      if (files_now.parts.size() == ChunkDecoder::kFiles || files_now.pixels + own > ChunkDecoder::kPixels)
        decode_now();
      files_now.add(parts[i], i);
    }
    decode_now();
    cut_now();
    const auto done = std::make_shared<PointOfWork>(context_, decoder_.stream(),
                                                    CU_EVENT_DISABLE_TIMING | CU_EVENT_BLOCKING_SYNC);
    result.done = done;
    for (const std::shared_ptr<KeptPixels>& image : kept) {
      if (image != nullptr) image->decoded = done;
    }
    result.kept.assign(kept.begin(), kept.end());
    return result;
  }

 private:
  // Parts that are given at once, and which they are of all.
  struct Chunk {
    std::vector<const JpegPart*> parts;
    std::vector<size_t> places;
    int64_t pixels = 0;  // of their whole images

    void add(const JpegPart& part, size_t place) {
      parts.push_back(&part);
      places.push_back(place);
      pixels += part.stored_height * part.stored_width;
    }
  };

  bool takes(const JpegPart& part) {
    const Stopwatch stopwatch(times_.parsing);
    int refused = 1;
    return nvjpeg().nvjpegJpegStreamParse_(handle_, reinterpret_cast<const unsigned char*>(part.bytes.data()),
                                           part.bytes.size(), 0, 0, header_) == NVJPEG_STATUS_SUCCESS &&
           nvjpeg().nvjpegDecodeBatchedSupported_(handle_, header_, &refused) == NVJPEG_STATUS_SUCCESS &&
           refused == 0;
  }

  void wait() {
    const Stopwatch stopwatch(times_.device);
    decoder_.wait();
  }

  Context& context_;
  nvjpegHandle_t handle_;
  Times& times_;
  nvjpegJpegStream_t header_ = nullptr;
  ChunkDecoder decoder_;
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

JpegsUnderWay JpegDecoder::decode(std::span<const JpegPart> parts, int64_t height, int64_t width,
                                  std::shared_ptr<const void> files) {
  if (parts.empty()) return {};
  context_.enter();
  std::unique_ptr<Session> session;
  {
    const Stopwatch stopwatch(times_.turn);
    session = take();
  }
  JpegsUnderWay result;
  try {
    result = session->decode(parts, height, width, files);
  } catch (...) {
    // What it has enqueued may still write: its destructor waits for that.
    session.reset();
    give_back(nullptr);
    throw;
  }
  give_back(std::move(session));
  times_.files += std::ssize(parts);
  return result;
}

JpegDecodingTimes JpegDecoder::times() const {
  return {.files = times_.files,
          .turn = times_.turn,
          .device = times_.device,
          .parsing = times_.parsing,
          .giving = times_.giving};
}

std::unique_ptr<JpegDecoder::Session> JpegDecoder::take() {
  std::unique_lock lock(mutex_);
  returned_.wait(lock, [&] { return !idle_.empty() || sessions_ < kMostSessions; });
  if (!idle_.empty()) {
    std::unique_ptr<Session> session = std::move(idle_.front());
    idle_.pop_front();
    return session;
  }
  auto session = std::make_unique<Session>(context_, handle_, module_->function("run"), times_);
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
