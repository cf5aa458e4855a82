// A queue of a GPU: a stream, and what libraries keep for it.
#pragma once

#include <memory>
#include <mutex>

#include "tessera/compile/queue.h"

#include "device/cuda/runtime/context.h"

namespace tessera::cuda {

class CudaQueue : public Queue {
 public:
  // Of a card that is only planned for it does nothing, and nothing must be asked of it.
  explicit CudaQueue(std::shared_ptr<Context> context) : CudaQueue(std::move(context), Priority::usual) {}
  ~CudaQueue() override;
  CudaQueue(const CudaQueue&) = delete;
  CudaQueue& operator=(const CudaQueue&) = delete;

  void copy(void* target, const void* source, int64_t bytes) override;
  void fill(void* device, int byte, int64_t bytes) override;
  void copy_from_host(void* device, const void* host, int64_t bytes) override;
  void copy_to_host(void* host, const void* device, int64_t bytes) override;
  std::shared_ptr<Event> mark() override;
  void wait_for(const Event& event) override;
  void synchronize() override;
  Queue* lane() override;
  std::unique_ptr<InputBuffer> input_buffer(int64_t bytes) override;
  std::unique_ptr<OutputBuffer> output_buffer(int64_t bytes) override;
  std::unique_ptr<Recording> record(const std::function<void()>& work) override;
  std::unique_ptr<DeviceTimer> timer(size_t marks) override;

  Context& context() const { return *context_; }
  const std::shared_ptr<Context>& shared_context() const { return context_; }
  CUstream stream() const { return stream_; }
  // For copies from the host that overlap the rest; made at the first call.
  CUstream copy_stream();
  // cuDNN's, which serves one thread at a time; null until a plan asks for one.
  std::shared_ptr<void>& cudnn_handle() { return cudnn_handle_; }
  // As synchronize(), but false where the queue is being recorded and cannot be waited for, or is lost.
  bool try_synchronize();

 private:
  // The least is that of streams made without one: what is prepared beside, such as decoding, gives way.
  enum class Priority : uint8_t { usual, highest };
  CudaQueue(std::shared_ptr<Context> context, Priority priority);

  std::shared_ptr<Context> context_;
  CUstream stream_ = nullptr;
  CUstream copy_stream_ = nullptr;
  std::unique_ptr<CudaQueue> lane_;  // from the first time that it is asked for
  std::shared_ptr<void> cudnn_handle_;
  // Held while it is recorded: a stream that is waited for then loses its recording.
  std::recursive_mutex recording_;
};

// Of a CudaQueue, as all are that kernels of this folder are given.
inline CUstream stream_of(Queue& queue) {
  return static_cast<CudaQueue&>(queue).stream();
}

}  // namespace tessera::cuda
