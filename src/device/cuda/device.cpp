#include "device/cuda/device.h"

#include <charconv>
#include <cstdlib>
#include <map>
#include <mutex>

#include "tessera/base/error.h"

#include "device/cuda/cluster/cluster_source.h"
#include "device/cuda/cluster/grouped_clusters.h"
#include "device/cuda/codegen/background_work.h"
#include "device/cuda/codegen/module_cache.h"
#include "device/cuda/convolution/few_channels.h"
#include "device/cuda/cudnn/cudnn_graph.h"
#include "device/cuda/fusion_patterns.h"
#include "device/cuda/kernel_registry.h"
#include "device/cuda/runtime/check.h"
#include "device/cuda/runtime/event_timer.h"
#include "device/cuda/runtime/host_buffers.h"
#include "device/cuda/runtime/memory_pool.h"
#include "device/cuda/runtime/peaks.h"

namespace tessera::cuda {
namespace {

constexpr std::string_view kPlanPrefix = "plan-";

// One context for each GPU, never closed: libraries' handles and compiled plans belong to it, and at the end
// of the process the driver may be gone before them.
template <typename Key>
std::shared_ptr<Context> context_of(const Key& key) {
  static std::mutex mutex;
  static auto& contexts = *new std::map<Key, std::shared_ptr<Context>>;
  const std::lock_guard lock(mutex);
  if (const auto known = contexts.find(key); known != contexts.end()) return known->second;
  auto context = std::make_shared<Context>(key);
  if (context->present() && contexts.empty()) {
    nvrtc();  // loaded first, so that it is torn down after this:
    std::atexit([] {
      for (const auto& [name, open] : contexts) open->modules().stop();
    });
  }
  contexts[key] = context;
  return context;
}

std::shared_ptr<Context> open_context(const std::string& options) {
  if (options.starts_with(kPlanPrefix)) return context_of(options.substr(kPlanPrefix.size()));
  int ordinal = 0;
  const auto end = options.data() + options.size();
  const auto [rest, error] = std::from_chars(options.data(), end, ordinal);
  require(options.empty() || (error == std::errc() && rest == end), ErrorCode::invalid_argument,
          "'cuda:{}' names no GPU: cuda, cuda:0, cuda:1, ... or cuda:plan-h100", options);
  return context_of(ordinal);
}

class GraphRecording : public Recording {
 public:
  GraphRecording(std::shared_ptr<Context> context, CUgraph graph) : context_(std::move(context)) {
    const CUresult status = driver().cuGraphInstantiate_(&executable_, graph, 0);
    driver().cuGraphDestroy_(graph);
    check(status, "instantiating a recorded run");
  }
  ~GraphRecording() override {
    if (executable_ != nullptr) driver().cuGraphExecDestroy_(executable_);
  }
  void launch() override {
    context_->enter();
    check(driver().cuGraphLaunch_(executable_, context_->stream()), "launching a recorded run");
  }

 private:
  std::shared_ptr<Context> context_;
  CUgraphExec executable_ = nullptr;
};

}  // namespace

CudaDevice::CudaDevice(const std::string& options) : context_(open_context(options)) {}

DeviceDescription CudaDevice::description() const {
  const GpuTraits& traits = context_->traits();
  DeviceDescription result;
  result.name = "cuda";
  result.model = fmt::format("{}, compute capability {}.{}", traits.model, traits.architecture / 10,
                             traits.architecture % 10);
  result.memory_bytes = traits.memory_bytes;
  result.bytes_per_second = traits.bytes_per_second;
  result.flops_per_second = flops_per_second(traits);
  if (!context_->present()) return result;
  int version = 0;
  driver().cuDriverGetVersion_(&version);
  result.versions["driver"] = fmt::format("{}.{}", version / 1000, version % 1000 / 10);
  int major = 0;
  int minor = 0;
  nvrtc().nvrtcVersion_(&major, &minor);
  result.versions["nvrtc"] = fmt::format("{}.{}", major, minor);
  result.versions["cublaslt"] = std::to_string(cublaslt().cublasLtGetVersion_());
  result.versions["cudnn"] = cudnn_version();
  return result;
}

PassTarget CudaDevice::pass_target(const PassOptions& options) const {
  PassTarget target;
  target.patterns = fusion_patterns(options, context_->traits());
  target.takes_wide_image = [context = context_](const Node& node) {
    return takes_wide_image(node, context->traits());
  };
  target.reductions_per_cluster = kReductionsOfACluster;
  target.values_per_group = kValuesOfAGroup;
  // Memory is not what is short on a GPU, and what is made again costs another pass over it: no more than is
  // lost in the noise.
  target.recompute_limit_bytes = 0;
  target.recompute_share = 0.002;
  return target;
}

Precision CudaDevice::training_precision() const {
  return tf32_allowed() ? Precision::tf32 : Precision::fp32;
}

std::vector<KernelCandidate> CudaDevice::candidates(const Node& node) const {
  return cuda_candidates(node, *context_);
}

std::shared_ptr<void> CudaDevice::prepare_kernels(const std::vector<KernelRequest>& requests,
                                                  bool tuned) const {
  if (!executes()) return nullptr;
  // Each thread needs a handle of cuDNN, which takes memory.
  constexpr unsigned kThreads = 8;
  auto work = std::make_shared<BackgroundWork>(kThreads);
  for (const KernelRequest& request : requests) {
    const CudaKernels* kernels = find_kernels(backend::kernel_key(request.node));
    if (kernels == nullptr || !kernels->make_ahead) continue;
    work->add(std::packaged_task<void()>(
        [kernels, request, tuned, context = context_] { kernels->make_ahead(request, tuned, *context); }));
  }
  return work;
}

bool CudaDevice::tunable(const Node& node) const {
  const CudaKernels* kernels = find_kernels(backend::kernel_key(node));
  return kernels != nullptr && kernels->tunable;
}

std::shared_ptr<void> CudaDevice::allocate(int64_t bytes) {
  require(executes(), ErrorCode::unsupported, "{} holds no memory", context_->traits().model);
  // The memory keeps its GPU's context open.
  std::shared_ptr<void> memory = context_->allocate(bytes);
  void* pointer = memory.get();
  return {pointer, [memory = std::move(memory), context = context_](void*) mutable { memory.reset(); }};
}

std::optional<int64_t> CudaDevice::free_bytes() const {
  return executes() ? std::optional(context_->free_bytes()) : std::nullopt;
}

std::optional<int64_t> CudaDevice::peak_bytes() const {
  const MemoryPool* pool = context_->pool();
  return pool != nullptr ? std::optional(pool->use().peak_block_bytes) : std::nullopt;
}

void CudaDevice::copy_from_host(void* device, const void* host, int64_t bytes) {
  if (bytes == 0) return;
  context_->enter();
  check(driver().cuMemcpyHtoDAsync_(address(device), host, static_cast<size_t>(bytes), context_->stream()),
        "copying to the GPU");
}

void CudaDevice::copy_to_host(void* host, const void* device, int64_t bytes) {
  if (bytes == 0) return;
  context_->enter();
  check(driver().cuMemcpyDtoHAsync_(host, address(device), static_cast<size_t>(bytes), context_->stream()),
        "copying from the GPU");
  context_->synchronize();
}

void CudaDevice::copy(void* target, const void* source, int64_t bytes) {
  if (bytes == 0) return;
  context_->enter();
  check(driver().cuMemcpyDtoDAsync_(address(target), address(source), static_cast<size_t>(bytes),
                                    context_->stream()),
        "copying on the GPU");
}

void CudaDevice::fill(void* device, int byte, int64_t bytes) {
  if (bytes == 0) return;
  context_->enter();
  check(driver().cuMemsetD8Async_(address(device), static_cast<unsigned char>(byte),
                                  static_cast<size_t>(bytes), context_->stream()),
        "filling memory");
}

void CudaDevice::synchronize() {
  context_->synchronize();
}

std::unique_ptr<InputBuffer> CudaDevice::input_buffer(int64_t bytes) {
  return make_input_buffer(context_, bytes);
}

std::unique_ptr<OutputBuffer> CudaDevice::output_buffer(int64_t bytes) {
  return make_output_buffer(context_, bytes);
}

std::unique_ptr<Recording> CudaDevice::record(const std::function<void()>& work) {
  context_->enter();
  check(driver().cuStreamBeginCapture_(context_->stream(), CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
        "starting to record");
  CUgraph graph = nullptr;
  try {
    work();
  } catch (...) {
    driver().cuStreamEndCapture_(context_->stream(), &graph);
    if (graph != nullptr) driver().cuGraphDestroy_(graph);
    throw;
  }
  check(driver().cuStreamEndCapture_(context_->stream(), &graph), "recording a run");
  return std::make_unique<GraphRecording>(context_, graph);
}

std::unique_ptr<DeviceTimer> CudaDevice::timer(size_t marks) {
  return std::make_unique<EventTimer>(context_, marks);
}

}  // namespace tessera::cuda
