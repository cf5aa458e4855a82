#include "device/cuda/runtime/context.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>

#include "tessera/base/error.h"
#include "tessera/base/text.h"

#include "device/cuda/codegen/module_cache.h"
#include "device/cuda/runtime/check.h"
#include "device/cuda/runtime/driver_memory.h"
#include "device/cuda/runtime/queue.h"
#include "device/cuda/runtime/status.h"

namespace tessera::cuda {
namespace {

constexpr int kOldestArchitecture = 80;

int attribute(CUdevice device, CUdevice_attribute which) {
  int value = 0;
  check(driver().cuDeviceGetAttribute_(&value, which, device), "asking for an attribute of the GPU");
  return value;
}

std::optional<uint64_t> allocate_from_driver(int64_t bytes) {
  CUdeviceptr memory = 0;
  const CUresult status = driver().cuMemAlloc_(&memory, static_cast<size_t>(std::max<int64_t>(bytes, 1)));
  if (status == CUDA_ERROR_OUT_OF_MEMORY) return std::nullopt;
  check(status, "allocating memory");
  return memory;
}

}  // namespace

int count_gpus() {
  check(driver().cuInit_(0), "starting the driver");
  int count = 0;
  check(driver().cuDeviceGetCount_(&count), "counting the GPUs");
  return count;
}

Context::Context(int ordinal) {
  const int count = count_gpus();
  int version = 0;
  check(driver().cuDriverGetVersion_(&version), "asking for the driver's version");
  require(version >= 13000, ErrorCode::unsupported,
          "the driver supports CUDA {}.{}, 13.0 is needed: update it", version / 1000, version % 1000 / 10);
  require(ordinal >= 0 && ordinal < count, ErrorCode::unsupported,
          "there is no GPU {}: the driver reports {} (CUDA_VISIBLE_DEVICES may hide others)", ordinal, count);
  check(driver().cuDeviceGet_(&device_, ordinal), "opening the GPU");
  char name[256] = "";
  check(driver().cuDeviceGetName_(name, sizeof(name), device_), "asking for the GPU's name");
  traits_.model = name;
  traits_.architecture = 10 * attribute(device_, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) +
                         attribute(device_, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  traits_.multiprocessors = attribute(device_, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  traits_.shared_bytes = attribute(device_, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
  traits_.clock_hertz = 1e3 * attribute(device_, CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
  // Two transfers in a clock on each line of the bus.
  const double bus_bytes = attribute(device_, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH) / 8.0;
  traits_.bytes_per_second = 2 * bus_bytes * 1e3 * attribute(device_, CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE);
  size_t memory = 0;
  check(driver().cuDeviceTotalMem_(&memory, device_), "asking for the GPU's memory");
  traits_.memory_bytes = static_cast<int64_t>(memory);
  require(traits_.architecture >= kOldestArchitecture, ErrorCode::unsupported,
          "{} has compute capability {}.{}, at least 8.0 is needed", traits_.model, traits_.architecture / 10,
          traits_.architecture % 10);
  check(driver().cuDevicePrimaryCtxRetain_(&context_, device_), "opening the GPU's context");
  enter();
  check(driver().cuStreamCreate_(&stream_, CU_STREAM_NON_BLOCKING), "creating a stream");
  if (attribute(device_, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED) != 0)
    pool_ = make_memory_pool(
        device_, [this] { return try_synchronize(); }, traits_.memory_bytes);
  modules_ = std::make_unique<ModuleCache>(*this);
}

Context::Context(const std::string& card) {
  // The SXM modules of NVIDIA's data sheets.
  constexpr int64_t kKib = int64_t{1} << 10;
  constexpr int64_t kGib = int64_t{1} << 30;
  static const std::map<std::string, GpuTraits> cards{
      {"a100", {"NVIDIA A100 80GB (plan only)", 80, 108, 80 * kGib, 164 * kKib, 1.41e9, 2.04e12}},
      {"h100", {"NVIDIA H100 80GB (plan only)", 90, 132, 80 * kGib, 228 * kKib, 1.98e9, 3.35e12}},
      {"h200", {"NVIDIA H200 141GB (plan only)", 90, 132, 141 * kGib, 228 * kKib, 1.98e9, 4.8e12}},
      {"b200", {"NVIDIA B200 180GB (plan only)", 100, 148, 180 * kGib, 228 * kKib, 1.98e9, 8e12}},
  };
  const auto found = cards.find(card);
  require(found != cards.end(), ErrorCode::invalid_argument,
          "there is no card '{}' to plan for (a100, h100, h200, b200)", card);
  traits_ = found->second;
  modules_ = std::make_unique<ModuleCache>(*this);
}

Context::~Context() {
  parts_.clear();
  modules_.reset();
  if (context_ == nullptr) return;
  driver().cuCtxSetCurrent_(context_);
  pool_.reset();
  driver().cuStreamDestroy_(stream_);
  driver().cuDevicePrimaryCtxRelease_(device_);
}

std::array<char, 16> Context::identity() const {
  CUuuid uuid{};
  check(driver().cuDeviceGetUuid_(&uuid, device_), "asking which GPU this is");
  std::array<char, 16> identity{};
  std::copy(std::begin(uuid.bytes), std::end(uuid.bytes), identity.begin());
  return identity;
}

void Context::enter() const {
  check(driver().cuCtxSetCurrent_(context_), "entering the GPU's context");
}

// The driver says it again at every call; nobody works on this stream, so that the wait is none.
void Context::check_sound() const {
  enter();
  const CUresult status = driver().cuStreamSynchronize_(stream_);
  // A recording that is being made may forbid to ask.
  if (status != CUDA_SUCCESS && error_code(status) == ErrorCode::device_fault)
    check(status, "looking after the GPU");
}

void Context::copy_from_host(void* device, const void* host, int64_t bytes) const {
  if (bytes == 0) return;
  enter();
  check(driver().cuMemcpyHtoDAsync_(address(device), host, static_cast<size_t>(bytes), stream_),
        "copying to the GPU");
  check(driver().cuStreamSynchronize_(stream_), "copying to the GPU");
}

void Context::copy_to_host(void* host, const void* device, int64_t bytes) const {
  if (bytes == 0) return;
  enter();
  check(driver().cuMemcpyDtoHAsync_(host, address(device), static_cast<size_t>(bytes), stream_),
        "copying from the GPU");
  check(driver().cuStreamSynchronize_(stream_), "copying from the GPU");
}

void Context::add_queue(CudaQueue& queue) {
  const std::lock_guard lock(mutex_);
  queues_.push_back(&queue);
}

void Context::remove_queue(CudaQueue& queue) {
  const std::lock_guard lock(mutex_);
  std::erase(queues_, &queue);
}

bool Context::try_synchronize() {
  const std::lock_guard lock(mutex_);
  return std::all_of(queues_.begin(), queues_.end(),
                     [](CudaQueue* queue) { return queue->try_synchronize(); });
}

std::shared_ptr<void> Context::allocate(int64_t bytes) {
  enter();
  const std::optional<uint64_t> memory =
      pool_ != nullptr ? pool_->allocate(bytes) : allocate_from_driver(bytes);
  if (!memory.has_value()) {
    size_t available = 0;
    size_t total = 0;
    driver().cuMemGetInfo_(&available, &total);
    fail(ErrorCode::out_of_memory,
         "{} has {} free of {}, {} more are needed: choose a smaller batch, or end what else uses the GPU",
         traits_.model, format_bytes(static_cast<double>(available)),
         format_bytes(static_cast<double>(total)), format_bytes(static_cast<double>(bytes)));
  }
  // Destructors do not throw; a lost context has nothing left to free.
  std::shared_ptr<void> block(reinterpret_cast<void*>(*memory),
                              [pool = pool_, context = context_](void* pointer) {
                                driver().cuCtxSetCurrent_(context);
                                if (pool != nullptr) {
                                  pool->free(address(pointer));
                                } else {
                                  driver().cuMemFree_(address(pointer));
                                }
                              });
  if (bytes > 0) {
    check(driver().cuMemsetD8Async_(*memory, 0, static_cast<size_t>(bytes), stream_), "clearing memory");
    check(driver().cuStreamSynchronize_(stream_), "clearing memory");
  }
  return block;
}

std::shared_ptr<void> Context::allocate_pinned(int64_t bytes) {
  enter();
  void* memory = nullptr;
  const CUresult status =
      driver().cuMemHostAlloc_(&memory, static_cast<size_t>(std::max<int64_t>(bytes, 1)), 0);
  require(status != CUDA_ERROR_OUT_OF_MEMORY, ErrorCode::out_of_memory,
          "cannot pin {} of host memory for copies to the GPU: choose a smaller batch, or free memory of the "
          "machine",
          format_bytes(static_cast<double>(bytes)));
  check(status, "pinning host memory");
  const std::lock_guard lock(mutex_);
  pinned_.emplace(static_cast<const std::byte*>(memory), bytes);
  return {memory, [this](void* block) {
            {
              const std::lock_guard lock(mutex_);
              pinned_.erase(static_cast<const std::byte*>(block));
            }
            driver().cuCtxSetCurrent_(context_);
            driver().cuMemFreeHost_(block);
          }};
}

bool Context::is_pinned(const void* memory, int64_t bytes) {
  const auto* begin = static_cast<const std::byte*>(memory);
  const std::lock_guard lock(mutex_);
  const auto next = pinned_.upper_bound(begin);
  if (next == pinned_.begin()) return false;
  const auto& [block, block_bytes] = *std::prev(next);
  return begin + bytes <= block + block_bytes;
}

int64_t Context::free_bytes() const {
  enter();
  size_t available = 0;
  size_t total = 0;
  check(driver().cuMemGetInfo_(&available, &total), "asking for the GPU's free memory");
  return static_cast<int64_t>(available) + (pool_ != nullptr ? pool_->use().idle_bytes : 0);
}

}  // namespace tessera::cuda
