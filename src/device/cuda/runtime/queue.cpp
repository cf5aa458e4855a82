#include "device/cuda/runtime/queue.h"

#include <algorithm>

#include "device/cuda/runtime/check.h"
#include "device/cuda/runtime/event_timer.h"
#include "device/cuda/runtime/host_buffers.h"
#include "device/cuda/runtime/point_of_work.h"

namespace tessera::cuda {
namespace {

class GraphRecording : public Recording {
 public:
  GraphRecording(CudaQueue& queue, CUgraph graph) : queue_(queue) {
    const CUresult status = driver().cuGraphInstantiate_(&executable_, graph, 0);
    driver().cuGraphDestroy_(graph);
    check(status, "instantiating a recorded run");
  }
  ~GraphRecording() override {
    if (executable_ != nullptr) driver().cuGraphExecDestroy_(executable_);
  }
  void launch() override {
    queue_.context().enter();
    check(driver().cuGraphLaunch_(executable_, queue_.stream()), "launching a recorded run");
  }

 private:
  CudaQueue& queue_;
  CUgraphExec executable_ = nullptr;
};

}  // namespace

CudaQueue::CudaQueue(std::shared_ptr<Context> context, Priority priority) : context_(std::move(context)) {
  if (!context_->present()) return;
  context_->enter();
  int least = 0;
  int greatest = 0;  // the lower number
  check(driver().cuCtxGetStreamPriorityRange_(&least, &greatest), "asking for the priorities of streams");
  const int number = priority == Priority::highest ? greatest : std::max(least - 1, greatest);
  check(driver().cuStreamCreateWithPriority_(&stream_, CU_STREAM_NON_BLOCKING, number), "creating a stream");
  context_->add_queue(*this);
}

CudaQueue::~CudaQueue() {
  if (!context_->present()) return;
  lane_.reset();
  context_->remove_queue(*this);
  driver().cuCtxSetCurrent_(context_->handle());
  for (const CUstream stream : {copy_stream_, stream_}) {
    if (stream != nullptr) driver().cuStreamSynchronize_(stream);
  }
  cudnn_handle_.reset();
  for (const CUstream stream : {copy_stream_, stream_}) {
    if (stream != nullptr) driver().cuStreamDestroy_(stream);
  }
}

CUstream CudaQueue::copy_stream() {
  if (copy_stream_ == nullptr)
    check(driver().cuStreamCreate_(&copy_stream_, CU_STREAM_NON_BLOCKING), "creating a stream");
  return copy_stream_;
}

void CudaQueue::copy(void* target, const void* source, int64_t bytes) {
  if (bytes == 0) return;
  context_->enter();
  check(driver().cuMemcpyDtoDAsync_(address(target), address(source), static_cast<size_t>(bytes), stream_),
        "copying on the GPU");
}

void CudaQueue::fill(void* device, int byte, int64_t bytes) {
  if (bytes == 0) return;
  context_->enter();
  check(driver().cuMemsetD8Async_(address(device), static_cast<unsigned char>(byte),
                                  static_cast<size_t>(bytes), stream_),
        "filling memory");
}

// From memory that is not pinned the driver has copied before it returns.
void CudaQueue::copy_from_host(void* device, const void* host, int64_t bytes) {
  if (bytes == 0) return;
  context_->enter();
  check(driver().cuMemcpyHtoDAsync_(address(device), host, static_cast<size_t>(bytes), stream_),
        "copying to the GPU");
}

void CudaQueue::copy_to_host(void* host, const void* device, int64_t bytes) {
  if (bytes > 0) {
    context_->enter();
    check(driver().cuMemcpyDtoHAsync_(host, address(device), static_cast<size_t>(bytes), stream_),
          "copying from the GPU");
  }
  synchronize();
}

std::shared_ptr<Event> CudaQueue::mark() {
  const std::lock_guard lock(recording_);
  context_->enter();
  return std::make_shared<PointOfWork>(*context_, stream_);
}

void CudaQueue::wait_for(const Event& event) {
  const auto* point = dynamic_cast<const PointOfWork*>(&event);
  if (point == nullptr) return event.wait();  // of a library: the host waits
  context_->enter();
  wait_on_stream(stream_, point->event());
}

void CudaQueue::synchronize() {
  if (!context_->present()) return;
  const std::lock_guard lock(recording_);
  context_->enter();
  check(driver().cuStreamSynchronize_(stream_), "waiting for the GPU");
  if (lane_ != nullptr) lane_->synchronize();
}

// Its few small kernels go ahead of those that wait for a place on the GPU.
Queue* CudaQueue::lane() {
  if (lane_ == nullptr && context_->present()) lane_.reset(new CudaQueue(context_, Priority::highest));
  return lane_.get();
}

bool CudaQueue::try_synchronize() {
  const std::unique_lock lock(recording_, std::try_to_lock);
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  return lock.owns_lock() && driver().cuCtxSetCurrent_(context_->handle()) == CUDA_SUCCESS &&
         driver().cuStreamIsCapturing_(stream_, &status) == CUDA_SUCCESS &&
         status == CU_STREAM_CAPTURE_STATUS_NONE && driver().cuStreamSynchronize_(stream_) == CUDA_SUCCESS;
}

std::unique_ptr<InputBuffer> CudaQueue::input_buffer(int64_t bytes) {
  return make_input_buffer(*this, bytes);
}

std::unique_ptr<OutputBuffer> CudaQueue::output_buffer(int64_t bytes) {
  return make_output_buffer(*this, bytes);
}

// What other threads do meanwhile, on other streams, is neither recorded nor refused.
std::unique_ptr<Recording> CudaQueue::record(const std::function<void()>& work) {
  const std::lock_guard lock(recording_);
  std::unique_lock<std::recursive_mutex> lane_lock;
  if (lane_ != nullptr) lane_lock = std::unique_lock(lane_->recording_);
  context_->enter();
  check(driver().cuStreamBeginCapture_(stream_, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL), "starting to record");
  CUgraph graph = nullptr;
  try {
    work();
  } catch (...) {
    driver().cuStreamEndCapture_(stream_, &graph);
    if (graph != nullptr) driver().cuGraphDestroy_(graph);
    throw;
  }
  check(driver().cuStreamEndCapture_(stream_, &graph), "recording a run");
  return std::make_unique<GraphRecording>(*this, graph);
}

std::unique_ptr<DeviceTimer> CudaQueue::timer(size_t marks) {
  return std::make_unique<EventTimer>(*this, marks);
}

}  // namespace tessera::cuda
