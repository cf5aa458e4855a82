#include "device/cuda/runtime/host_buffers.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "tessera/base/error.h"
#include "tessera/base/text.h"

#include "device/cuda/runtime/check.h"
#include "device/cuda/runtime/event.h"

namespace tessera::cuda {
namespace {

struct FreePinned {
  void operator()(void* memory) const { driver().cuMemFreeHost_(memory); }
};
using Pinned = std::unique_ptr<void, FreePinned>;

Pinned allocate_pinned(int64_t bytes) {
  void* memory = nullptr;
  const CUresult status =
      driver().cuMemHostAlloc_(&memory, static_cast<size_t>(std::max<int64_t>(bytes, 1)), 0);
  require(status != CUDA_ERROR_OUT_OF_MEMORY, ErrorCode::out_of_memory,
          "cannot pin {} of host memory for copies to the GPU: choose a smaller batch, or free memory of the "
          "machine",
          format_bytes(static_cast<double>(bytes)));
  check(status, "pinning host memory");
  return Pinned(memory);
}

// Events that only order work are cheaper without a time.
Event untimed_event() {
  return create_event(CU_EVENT_DISABLE_TIMING);
}

class PinnedInput : public InputBuffer {
 public:
  PinnedInput(std::shared_ptr<Context> context, int64_t bytes)
      : context_(std::move(context)),
        size_(static_cast<size_t>(bytes)),
        present_(context_->allocate(bytes)),
        shown_(untimed_event()) {
    for (Sending& sending : sendings_) sending.done = untimed_event();
    record_event(shown_, context_->stream());  // clearing the memory comes before the first copy into it
  }

  // The pool may hand the memory out again at once, and does not know of the other stream.
  ~PinnedInput() override {
    driver().cuCtxSetCurrent_(context_->handle());
    for (const Sending& sending : sendings_) driver().cuEventSynchronize_(sending.done.get());
  }

  const void* memory() const override { return present_.get(); }

  void load(const void* host) override {
    if (size_ == 0) return;
    context_->enter();
    const size_t turn = (latest_ + 1) % sendings_.size();
    Sending& sending = sendings_[turn];
    if (sending.memory == nullptr) sending.memory = allocate_pinned(static_cast<int64_t>(size_));
    wait_on_host(sending.done);  // of the load before the last one: mostly long ago
    std::memcpy(sending.memory.get(), host, size_);
    void* target = present_.get();
    if (loaded_) {
      if (next_ == nullptr) allocate_next();
      target = next_.get();
    }
    wait_on_stream(context_->copy_stream(), shown_);
    check(driver().cuMemcpyHtoDAsync_(address(target), sending.memory.get(), size_, context_->copy_stream()),
          "copying to the GPU");
    record_event(sending.done, context_->copy_stream());
    latest_ = turn;
    loaded_ = true;
  }

  void show() override {
    if (size_ == 0) return;
    context_->enter();
    wait_on_stream(context_->stream(), sendings_[latest_].done);
    if (next_ == nullptr) return;  // the first contents went where they are read
    check(
        driver().cuMemcpyDtoDAsync_(address(present_.get()), address(next_.get()), size_, context_->stream()),
        "copying on the GPU");
    record_event(shown_, context_->stream());
  }

 private:
  // Contents that leave the host.
  struct Sending {
    Pinned memory;  // from its first use on
    Event done;
  };

  void allocate_next() {
    next_ = context_->allocate(static_cast<int64_t>(size_));
    record_event(shown_, context_->stream());
  }

  std::shared_ptr<Context> context_;
  size_t size_;
  std::shared_ptr<void> present_;
  std::shared_ptr<void> next_;  // from the second load on: inputs that never change need it not
  bool loaded_ = false;
  Event shown_;  // from then on the next contents may be overwritten
  std::array<Sending, 2> sendings_;
  size_t latest_ = 0;
};

class PinnedOutput : public OutputBuffer {
 public:
  PinnedOutput(std::shared_ptr<Context> context, int64_t bytes)
      : context_(std::move(context)),
        size_(static_cast<size_t>(bytes)),
        memory_(allocate_pinned(bytes)),
        arrived_(untimed_event()) {}

  ~PinnedOutput() override {
    driver().cuCtxSetCurrent_(context_->handle());
    driver().cuEventSynchronize_(arrived_.get());  // the copy writes into what is freed here
  }

  void begin(const void* device) override {
    context_->enter();
    if (size_ > 0) {
      check(driver().cuMemcpyDtoHAsync_(memory_.get(), address(device), size_, context_->stream()),
            "copying from the GPU");
    }
    record_event(arrived_, context_->stream());
  }

  const void* finish() override {
    context_->enter();
    wait_on_host(arrived_);
    return memory_.get();
  }

 private:
  std::shared_ptr<Context> context_;
  size_t size_;
  Pinned memory_;
  Event arrived_;
};

}  // namespace

std::unique_ptr<InputBuffer> make_input_buffer(std::shared_ptr<Context> context, int64_t bytes) {
  context->enter();
  return std::make_unique<PinnedInput>(std::move(context), bytes);
}

std::unique_ptr<OutputBuffer> make_output_buffer(std::shared_ptr<Context> context, int64_t bytes) {
  context->enter();
  return std::make_unique<PinnedOutput>(std::move(context), bytes);
}

}  // namespace tessera::cuda
