#include "device/cuda/device.h"

#include <cstdlib>
#include <limits>
#include <map>
#include <mutex>

#include "tessera/base/error.h"
#include "tessera/base/text.h"

#include "device/cuda/cluster/cluster_source.h"
#include "device/cuda/cluster/grouped_clusters.h"
#include "device/cuda/codegen/artifacts.h"
#include "device/cuda/codegen/module_cache.h"
#include "device/cuda/communication/nccl_kernel.h"
#include "device/cuda/communication/nccl_library.h"
#include "device/cuda/convolution/few_channels.h"
#include "device/cuda/cudnn/cudnn_graph.h"
#include "device/cuda/fusion_patterns.h"
#include "device/cuda/image/jpeg_decoder.h"
#include "device/cuda/kernel_registry.h"
#include "device/cuda/matmul/logit_rows.h"
#include "device/cuda/matmul/padded_matmul.h"
#include "device/cuda/matmul/product_cluster.h"
#include "device/cuda/runtime/memory_pool.h"
#include "device/cuda/runtime/peaks.h"
#include "device/cuda/runtime/queue.h"

namespace tessera::cuda {
namespace {

constexpr std::string_view kPlanPrefix = "plan-";
constexpr std::string_view kRankPrefix = "rank=";

// One context for each GPU, never closed: libraries' handles and compiled plans belong to it, and at the end
// of the process the driver may be gone before them.
template <typename Key>
std::shared_ptr<Context> context_of(const Key& key) {
  static std::mutex mutex;
  static auto& contexts = *new std::map<Key, std::shared_ptr<Context>>;
  const std::lock_guard lock(mutex);
  if (const auto known = contexts.find(key); known != contexts.end()) return known->second;
  auto context = std::make_shared<Context>(key);
  if (context->present()) {
    // Said to be missing now, and not when kernels want them; and torn down after what follows.
    nvrtc();
    cublaslt();
    cudnn_library();
  }
  if (context->present() && contexts.empty()) {
    std::atexit([] {
      for (const auto& [name, open] : contexts) open->modules().stop();
    });
  }
  contexts[key] = context;
  return context;
}

std::shared_ptr<Context> open_context(const std::string& options) {
  if (options.starts_with(kPlanPrefix)) return context_of(options.substr(kPlanPrefix.size()));
  const bool is_rank = options.starts_with(kRankPrefix);
  const std::string_view number = std::string_view(options).substr(is_rank ? kRankPrefix.size() : 0);
  const int64_t ordinal = options.empty() ? 0 : parse_integer(number).value_or(-1);
  require(ordinal >= 0 && ordinal <= std::numeric_limits<int>::max(), ErrorCode::invalid_argument,
          "'cuda:{}' names no GPU: cuda, cuda:0, cuda:1, ..., cuda:rank=0 or cuda:plan-h100", options);
  return context_of(static_cast<int>(is_rank ? ordinal % std::max(count_gpus(), 1) : ordinal));
}

}  // namespace

CudaDevice::CudaDevice(const std::string& options)
    : context_(open_context(options)), groups_(context_->part<NcclGroups>()) {}

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
  target.padded_columns = [context = context_](const Node& product) {
    return padded_columns(product, context->traits());
  };
  target.logit_rows = logit_rows;
  target.clusters_take = clusters_take;
  target.reductions_per_cluster = kReductionsOfACluster;
  target.values_per_group = kValuesOfAGroup;
  target.clusters_products = [context = context_](const Node* before, const Node& product,
                                                  const Node* after) {
    return clusters_product(before, product, after, context->traits());
  };
  // Of gradients that NCCL exchanges beside the backward pass, as PyTorch has it.
  target.bucket_bytes = int64_t{25} << 20;
  target.joined_reduction_alignment = memory_alignment();
  // What is recomputed costs another pass over memory. Memory is not what is short: no more than is lost in
  // the noise, and some more in steps that, with a larger batch, might not fit.
  target.recompute_limit_bytes = 0;
  target.recompute_share = 0.003;
  target.recompute_share_of_large_steps = 0.008;
  target.large_step_bytes = context_->traits().memory_bytes / 4;
  // At most a two-hundredth of a step's time at the limits of the card, for an eighth of a Transformer's
  // memory (docs/experiments/078-values-recomputed-beside-a-gradient.md).
  target.recompute_share_beside = 0.005;
  target.bytes_per_flop =
      context_->traits().bytes_per_second / flops_per_second(context_->traits()).at(Precision::bf16);
  target.recomputes_activation = [options, context = context_](const Node& weight_gradient) {
    return recomputes_activation(weight_gradient, options, context->traits());
  };
  return target;
}

Precision CudaDevice::training_precision() const {
  return tf32_allowed() ? Precision::tf32 : Precision::fp32;
}

std::vector<KernelCandidate> CudaDevice::candidates(const Node& node) const {
  return cuda_candidates(node, *context_);
}

bool CudaDevice::tunable(const Node& node) const {
  const CudaKernels* kernels = find_kernels(backend::kernel_key(node));
  return kernels != nullptr && kernels->tunable;
}

void CudaDevice::wait_for_kernels() {
  context_->modules().wait();
}

std::function<void()> CudaDevice::settings_of_thread() const {
  // Of a GPU that is lost whatever comes next says so.
  return [context = context_] {
    if (context->present()) driver().cuCtxSetCurrent_(context->handle());
  };
}

KernelArtifacts CudaDevice::collect(const std::function<void()>& work) {
  ArtifactRecording recording;
  work();
  wait_for_kernels();
  return recording.take();
}

std::shared_ptr<void> CudaDevice::offer(KernelArtifacts artifacts) {
  return offer_artifacts(std::move(artifacts));
}

void CudaDevice::connect(const std::shared_ptr<Communicator>& group, int64_t most_blocks) {
  if (executes()) groups_.connect(group, most_blocks);
}

std::string CudaDevice::refusal(const Node& node, const Communicator* group) const {
  return groups_.refusal(node, group);
}

KernelCandidate CudaDevice::collective_candidate() const {
  return nccl_candidate(groups_);
}

std::string CudaDevice::collective_library() const {
  return nccl_name();
}

std::shared_ptr<void> CudaDevice::allocate(int64_t bytes) {
  require(executes(), ErrorCode::unsupported, "{} holds no memory", context_->traits().model);
  // The memory keeps its GPU's context open.
  std::shared_ptr<void> memory = context_->allocate(bytes);
  void* pointer = memory.get();
  return {pointer, [memory = std::move(memory), context = context_](void*) mutable { memory.reset(); }};
}

std::shared_ptr<void> CudaDevice::allocate_pinned(int64_t bytes) {
  require(executes(), ErrorCode::unsupported, "{} is not there to copy to", context_->traits().model);
  std::shared_ptr<void> memory = context_->allocate_pinned(bytes);
  void* pointer = memory.get();
  return {pointer, [memory = std::move(memory), context = context_](void*) mutable { memory.reset(); }};
}

JpegsUnderWay CudaDevice::decode_jpegs(std::span<const JpegPart> parts, int64_t height, int64_t width,
                                       std::shared_ptr<const void> files) {
  require(executes(), ErrorCode::unsupported, "{} is not there to decode images", context_->traits().model);
  return context_->part<JpegDecoder>().decode(parts, height, width, std::move(files));
}

JpegDecodingTimes CudaDevice::decoding_times() const {
  return executes() ? context_->part<JpegDecoder>().times() : JpegDecodingTimes{};
}

std::optional<int64_t> CudaDevice::free_bytes() const {
  return executes() ? std::optional(context_->free_bytes()) : std::nullopt;
}

std::optional<int64_t> CudaDevice::peak_bytes() const {
  const MemoryPool* pool = context_->pool();
  return pool != nullptr ? std::optional(pool->use().peak_block_bytes) : std::nullopt;
}

void CudaDevice::copy_from_host(void* device, const void* host, int64_t bytes) {
  context_->copy_from_host(device, host, bytes);
}

void CudaDevice::copy_to_host(void* host, const void* device, int64_t bytes) {
  context_->copy_to_host(host, device, bytes);
}

std::shared_ptr<Queue> CudaDevice::queue() {
  return std::make_shared<CudaQueue>(context_);
}

}  // namespace tessera::cuda
