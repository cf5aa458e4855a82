#include "device/cuda/runtime/host_buffers.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <utility>
#include <vector>

#include "tessera/base/error.h"
#include "tessera/base/text.h"

#include "device/cuda/runtime/check.h"
#include "device/cuda/runtime/stream_event.h"

namespace tessera::cuda {
namespace {

class PinnedInput : public InputBuffer {
 public:
  PinnedInput(CudaQueue& queue, int64_t bytes)
      : queue_(queue),
        size_(static_cast<size_t>(bytes)),
        present_(queue.context().allocate(bytes)),
        shown_(untimed_event()) {
    for (Sending& sending : sendings_) sending.done = untimed_event();
  }

  // The pool may hand the memory out again at once.
  ~PinnedInput() override {
    driver().cuCtxSetCurrent_(queue_.context().handle());
    for (const Sending& sending : sendings_) driver().cuEventSynchronize_(sending.done.get());
    driver().cuEventSynchronize_(shown_.get());
  }

  const void* memory() const override { return present_.get(); }

  void load(const std::shared_ptr<void>& host) override {
    if (size_ == 0) return;
    queue_.context().enter();
    const size_t turn = (latest_ + 1) % sendings_.size();
    Sending& sending = sendings_[turn];
    wait_on_host(sending.done);  // of the load before the last one: mostly long ago
    const void* source = contents_to_send(sending, host);
    void* target = present_.get();
    if (loaded_) {
      if (next_ == nullptr) next_ = queue_.context().allocate(static_cast<int64_t>(size_));
      target = next_.get();
    }
    wait_on_stream(queue_.copy_stream(), shown_);
    check(driver().cuMemcpyHtoDAsync_(address(target), source, size_, queue_.copy_stream()),
          "copying to the GPU");
    record_event(sending.done, queue_.copy_stream());
    latest_ = turn;
    loaded_ = true;
  }

  void show() override {
    if (size_ == 0) return;
    queue_.context().enter();
    wait_on_stream(queue_.stream(), sendings_[latest_].done);
    if (next_ == nullptr) return;  // the first contents went where they are read
    check(driver().cuMemcpyDtoDAsync_(address(present_.get()), address(next_.get()), size_, queue_.stream()),
          "copying on the GPU");
    record_event(shown_, queue_.stream());
  }

 private:
  // Contents that leave the host.
  struct Sending {
    std::shared_ptr<void> memory;  // for contents that are not pinned, from the first ones on
    std::shared_ptr<void> given;   // pinned ones, until they have arrived
    StreamEvent done;
  };

  const void* contents_to_send(Sending& sending, const std::shared_ptr<void>& host) {
    Context& context = queue_.context();
    sending.given = context.is_pinned(host.get(), static_cast<int64_t>(size_)) ? host : nullptr;
    if (sending.given != nullptr) return host.get();
    if (sending.memory == nullptr) sending.memory = context.allocate_pinned(static_cast<int64_t>(size_));
    std::memcpy(sending.memory.get(), host.get(), size_);
    return sending.memory.get();
  }

  CudaQueue& queue_;
  size_t size_;
  std::shared_ptr<void> present_;
  std::shared_ptr<void> next_;  // from the second load on: inputs that never change need it not
  bool loaded_ = false;
  StreamEvent shown_;  // from then on the next contents may be overwritten
  std::array<Sending, 2> sendings_;
  size_t latest_ = 0;
};

// Each copy goes to a block of its own until whoever took it lets go of it. Pinned memory is scarce: who
// holds many gets copies of them.
class PinnedOutput : public OutputBuffer {
 public:
  PinnedOutput(CudaQueue& queue, int64_t bytes)
      : queue_(queue), size_(static_cast<size_t>(bytes)), blocks_{allocate()}, arrived_(untimed_event()) {}

  ~PinnedOutput() override {
    driver().cuCtxSetCurrent_(queue_.context().handle());
    driver().cuEventSynchronize_(arrived_.get());  // the copy writes into what may be freed here
  }

  void begin(const void* device) override {
    queue_.context().enter();
    const auto free = find_free();
    latest_ = free != blocks_.end() ? *free : blocks_.emplace_back(allocate());
    if (size_ > 0) {
      check(driver().cuMemcpyDtoHAsync_(latest_.get(), address(device), size_, queue_.stream()),
            "copying from the GPU");
    }
    record_event(arrived_, queue_.stream());
  }

  std::shared_ptr<void> finish() override {
    queue_.context().enter();
    wait_on_host(arrived_);
    std::shared_ptr<void> block = std::move(latest_);
    if (blocks_.size() < kMostBlocks || find_free() != blocks_.end()) return block;
    const std::shared_ptr<std::byte[]> copy(new std::byte[size_]);
    std::memcpy(copy.get(), block.get(), size_);
    return {copy, copy.get()};
  }

 private:
  static constexpr size_t kMostBlocks = 4;

  // The context goes after what it has pinned.
  std::shared_ptr<void> allocate() const {
    std::shared_ptr<void> block = queue_.context().allocate_pinned(static_cast<int64_t>(size_));
    void* memory = block.get();
    return {memory,
            [context = queue_.shared_context(), block = std::move(block)](void*) mutable { block.reset(); }};
  }

  std::vector<std::shared_ptr<void>>::iterator find_free() {
    return std::find_if(blocks_.begin(), blocks_.end(),
                        [](const auto& block) { return block.use_count() == 1; });
  }

  CudaQueue& queue_;
  size_t size_;
  std::vector<std::shared_ptr<void>> blocks_;
  std::shared_ptr<void> latest_;  // where the copy that was begun goes
  StreamEvent arrived_;
};

}  // namespace

std::unique_ptr<InputBuffer> make_input_buffer(CudaQueue& queue, int64_t bytes) {
  queue.context().enter();
  return std::make_unique<PinnedInput>(queue, bytes);
}

std::unique_ptr<OutputBuffer> make_output_buffer(CudaQueue& queue, int64_t bytes) {
  queue.context().enter();
  return std::make_unique<PinnedOutput>(queue, bytes);
}

}  // namespace tessera::cuda
