#include "device/cpu/device.h"

#include <cstring>
#include <fstream>

#include <dnnl.h>
#include <hwy/highway.h>
#include <omp.h>
#include <sys/mman.h>

#include "tessera/base/error.h"
#include "tessera/base/rounding.h"
#include "tessera/base/text.h"
#include "tessera/device/common/batch_norm_patterns.h"
#include "tessera/device/common/contraction_pattern.h"
#include "tessera/device/common/residual_layer_norm.h"

#include "device/cpu/cluster/cluster_kernel.h"
#include "device/cpu/convolution/depthwise_block_pattern.h"
#include "device/cpu/kernel_registry.h"
#include "device/cpu/onednn/post_operations.h"
#include "device/cpu/panels/loop_epilogue.h"
#include "device/cpu/runtime/instruction_set.h"
#include "device/cpu/runtime/memory_limit.h"

namespace tessera::cpu {
namespace {

constexpr size_t kHugePageBytes = size_t{2} << 20;

std::string processor_model() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("model name")) continue;
    const size_t colon = line.find(':');
    if (colon != std::string::npos && colon + 2 < line.size()) return line.substr(colon + 2);
  }
  return "unknown processor";
}

std::string onednn_version() {
  const dnnl_version_t* version = dnnl_version();
  return fmt::format("{}.{}.{}", version->major, version->minor, version->patch);
}

std::shared_ptr<void> allocate_small(size_t bytes) {
  const size_t size = round_up(bytes, kMemoryAlignment);
  void* memory = std::aligned_alloc(kMemoryAlignment, size);
  if (memory != nullptr) std::memset(memory, 0, size);
  return {memory, std::free};
}

// Fresh pages are zero without being touched; huge ones spare the translation look-aside buffer when a pass
// walks whole activations.
std::shared_ptr<void> allocate_pages(size_t bytes) {
  const size_t size = bytes + kHugePageBytes;
  void* mapping = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping == MAP_FAILED) return nullptr;
  void* memory = reinterpret_cast<void*>(round_up(reinterpret_cast<uintptr_t>(mapping), kHugePageBytes));
  madvise(memory, bytes, MADV_HUGEPAGE);
  return {memory, [mapping, size](void*) { munmap(mapping, size); }};
}

}  // namespace

// What is recomputed in the cache, for the most part at least, from memory that the next node reads anyway,
// costs next to nothing; larger activations cost two passes over memory. What the system says of its cache is
// not to be relied on: virtual machines report that of the whole processor.
PassTarget CpuDevice::pass_target(const PassOptions& options) const {
  constexpr int64_t kMostlyCachedBytes = int64_t{32} << 20;
  const auto ends_convolution = [](const Node& activation) {
    return takes_activation(activation) || only_loops_end_with(activation);
  };
  PassTarget target;
  target.patterns = {backend::batch_norm_gradient_pattern(), backend::recomputed_batch_norm_pattern(),
                     backend::batch_norm_pattern(), backend::residual_layer_norm_gradient_pattern(),
                     backend::residual_layer_norm_pattern()};
  if (options.frozen) target.patterns.push_back(depthwise_block_pattern());
  target.patterns.push_back(
      backend::contraction_pattern("convolution", {.takes_activation = ends_convolution}));
  target.patterns.push_back(backend::contraction_pattern("matmul", {.takes_activation = takes_activation}));
  target.clusters_take = clusters_take;
  target.expansion = expansion_of;
  target.recompute_limit_bytes = kMostlyCachedBytes;
  return target;
}

DeviceDescription CpuDevice::description() const {
  DeviceDescription result;
  result.name = "cpu";
  result.model = fmt::format("{}, {} threads", processor_model(), omp_get_max_threads());
  result.memory_bytes = available_memory();
  result.versions["onednn"] = onednn_version();
  result.versions["instructions"] = instruction_set();
  result.versions["highway"] = fmt::format("{}.{}.{}", HWY_MAJOR, HWY_MINOR, HWY_PATCH);
  return result;
}

std::vector<KernelCandidate> CpuDevice::candidates(const Node& node) const {
  return cpu_candidates(node);
}

bool CpuDevice::tunable(const Node& node) const {
  const CpuKernels* kernels = find_kernels(kernel_key(node));
  return kernels != nullptr && kernels->tunable && kernels->tunable(node);
}

std::shared_ptr<void> CpuDevice::allocate(int64_t bytes) {
  const size_t wanted = static_cast<size_t>(std::max<int64_t>(bytes, 1));
  std::shared_ptr<void> result = wanted < kHugePageBytes ? allocate_small(wanted) : allocate_pages(wanted);
  require(result != nullptr, ErrorCode::out_of_memory, "the CPU has no {} left",
          format_bytes(static_cast<double>(bytes)));
  return result;
}

std::function<void()> CpuDevice::settings_of_thread() const {
  return [threads = omp_get_max_threads()] { omp_set_num_threads(threads); };
}

}  // namespace tessera::cpu
