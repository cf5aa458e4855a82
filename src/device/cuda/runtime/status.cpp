#include "device/cuda/runtime/status.h"

#include <algorithm>
#include <string>
#include <vector>

namespace tessera::cuda {
namespace {

struct Meaning {
  CUresult status;
  ErrorCode code;
  std::string_view advice = "";
};

constexpr std::string_view kFullMemory =
    "the GPU's memory is full: choose a smaller batch, or end what else uses it";
constexpr std::string_view kOldDriver = "the driver is too old for CUDA 13: update it";
constexpr std::string_view kLostContext =
    "a kernel failed and the GPU's context is lost: start the process again; with TESSERA_SYNCHRONIZE=1 its "
    "error names the node, and compute-sanitizer finds the kernel's line";
constexpr std::string_view kBrokenGpu =
    "the GPU reports a hardware fault: start the process again on another one";

// After a fault every call in the context fails with the same status, also those that ask for memory.
constexpr Meaning kMeanings[] = {
    {CUDA_ERROR_OUT_OF_MEMORY, ErrorCode::out_of_memory, kFullMemory},

    {CUDA_ERROR_NOT_INITIALIZED, ErrorCode::unsupported},
    {CUDA_ERROR_STUB_LIBRARY, ErrorCode::unsupported,
     "the library is a stub of the toolkit: install NVIDIA's driver"},
    {CUDA_ERROR_NO_DEVICE, ErrorCode::unsupported, "there is no GPU that the driver can use"},
    {CUDA_ERROR_INVALID_DEVICE, ErrorCode::unsupported, "there is no GPU of that number"},
    {CUDA_ERROR_DEVICE_UNAVAILABLE, ErrorCode::unsupported, "another process holds the GPU exclusively"},
    {CUDA_ERROR_DEVICE_NOT_LICENSED, ErrorCode::unsupported},
    {CUDA_ERROR_OPERATING_SYSTEM, ErrorCode::unsupported},
    {CUDA_ERROR_NOT_PERMITTED, ErrorCode::unsupported},
    {CUDA_ERROR_NOT_SUPPORTED, ErrorCode::unsupported},
    {CUDA_ERROR_SYSTEM_NOT_READY, ErrorCode::unsupported,
     "the machine's GPUs are not ready: the fabric manager may not run"},
    {CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, ErrorCode::unsupported, kOldDriver},
    {CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE, ErrorCode::unsupported, kOldDriver},
    {CUDA_ERROR_UNSUPPORTED_PTX_VERSION, ErrorCode::unsupported, kOldDriver},
    {CUDA_ERROR_NO_BINARY_FOR_GPU, ErrorCode::unsupported, kOldDriver},

    // They leave the context as it was.
    {CUDA_ERROR_INVALID_VALUE, ErrorCode::internal},
    {CUDA_ERROR_INVALID_HANDLE, ErrorCode::internal},
    {CUDA_ERROR_INVALID_CONTEXT, ErrorCode::internal},
    {CUDA_ERROR_INVALID_IMAGE, ErrorCode::internal},
    {CUDA_ERROR_INVALID_PTX, ErrorCode::internal},
    {CUDA_ERROR_NOT_FOUND, ErrorCode::internal},
    {CUDA_ERROR_NOT_READY, ErrorCode::internal},
    {CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, ErrorCode::internal},
    {CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE, ErrorCode::internal},
    {CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, ErrorCode::internal},
    {CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, ErrorCode::internal},
    {CUDA_ERROR_STREAM_CAPTURE_UNJOINED, ErrorCode::internal},
    {CUDA_ERROR_STREAM_CAPTURE_ISOLATION, ErrorCode::internal},
    {CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, ErrorCode::internal},
    {CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, ErrorCode::internal},

    {CUDA_ERROR_ILLEGAL_ADDRESS, ErrorCode::device_fault, kLostContext},
    {CUDA_ERROR_LAUNCH_FAILED, ErrorCode::device_fault, kLostContext},
    {CUDA_ERROR_LAUNCH_TIMEOUT, ErrorCode::device_fault, kLostContext},
    {CUDA_ERROR_MISALIGNED_ADDRESS, ErrorCode::device_fault, kLostContext},
    {CUDA_ERROR_ILLEGAL_INSTRUCTION, ErrorCode::device_fault, kLostContext},
    {CUDA_ERROR_INVALID_ADDRESS_SPACE, ErrorCode::device_fault, kLostContext},
    {CUDA_ERROR_INVALID_PC, ErrorCode::device_fault, kLostContext},
    {CUDA_ERROR_ASSERT, ErrorCode::device_fault, kLostContext},
    {CUDA_ERROR_CONTEXT_IS_DESTROYED, ErrorCode::device_fault, kLostContext},
    {CUDA_ERROR_ECC_UNCORRECTABLE, ErrorCode::device_fault, kBrokenGpu},
    {CUDA_ERROR_NVLINK_UNCORRECTABLE, ErrorCode::device_fault, kBrokenGpu},
    {CUDA_ERROR_HARDWARE_STACK_ERROR, ErrorCode::device_fault, kBrokenGpu},
};

const Meaning* find_meaning(CUresult status) {
  const auto* found = std::find_if(std::begin(kMeanings), std::end(kMeanings),
                                   [&](const Meaning& one) { return one.status == status; });
  return found == std::end(kMeanings) ? nullptr : found;
}

}  // namespace

ErrorCode error_code(CUresult status) {
  const Meaning* meaning = find_meaning(status);
  return meaning != nullptr ? meaning->code : ErrorCode::device_fault;
}

std::string_view advice_for(CUresult status) {
  const Meaning* meaning = find_meaning(status);
  return meaning != nullptr ? meaning->advice : "";
}

// It works on the host alone.
ErrorCode error_code(nvrtcResult status) {
  return status == NVRTC_ERROR_OUT_OF_MEMORY ? ErrorCode::out_of_memory : ErrorCode::internal;
}

ErrorCode error_code(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_ALLOC_FAILED:
      return ErrorCode::out_of_memory;
    case CUBLAS_STATUS_NOT_SUPPORTED:
    case CUBLAS_STATUS_ARCH_MISMATCH:
    case CUBLAS_STATUS_INVALID_VALUE:  // of a product that it has no words for
      return ErrorCode::unsupported;
    default:
      return ErrorCode::device_fault;
  }
}

// The message without what its lines give as reasons: those quote conditions of cuDNN's source, with statuses
// that nothing returned, such as "(CUDNN_STATUS_NOT_INITIALIZED == status) || ...".
static std::string without_reasons(std::string_view message) {
  std::string kept;
  while (!message.empty()) {
    const std::string_view line = message.substr(0, message.find('\n'));
    kept.append(line.substr(0, line.find("Reason:"))).append("\n");
    message.remove_prefix(std::min(line.size() + 1, message.size()));
  }
  return kept;
}

// What a status of cuDNN is, by what its name begins with: families get new members. All others are faults.
struct CudnnMeaning {
  std::string_view prefix;
  ErrorCode code;
};

// The first that fits counts.
static constexpr CudnnMeaning kCudnnMeanings[] = {
    {"CUDNN_STATUS_ALLOC_FAILED", ErrorCode::out_of_memory},
    {"CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED", ErrorCode::out_of_memory},
    {"CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED", ErrorCode::out_of_memory},

    {"CUDNN_STATUS_NOT_SUPPORTED", ErrorCode::unsupported},
    {"CUDNN_STATUS_ARCH_MISMATCH", ErrorCode::unsupported},
    {"CUDNN_STATUS_RUNTIME_PREREQUISITE_MISSING", ErrorCode::unsupported},

    // Of a graph that it has no words for, and of a plan that another version has saved.
    {"CUDNN_STATUS_BAD_PARAM", ErrorCode::unsupported},
    {"CUDNN_STATUS_INVALID_VALUE", ErrorCode::unsupported},
    {"CUDNN_STATUS_SERIALIZATION_VERSION_MISMATCH", ErrorCode::unsupported},

    // Of an installation that is not whole.
    {"CUDNN_STATUS_SUBLIBRARY_", ErrorCode::unsupported},
    {"CUDNN_STATUS_VERSION_MISMATCH", ErrorCode::unsupported},
    {"CUDNN_STATUS_LICENSE_ERROR", ErrorCode::unsupported},

    // Of an engine whose code cannot be made for this graph, where the next one's can (cudnn-frontend's issue
    // 1084). Whoever asks has asked the driver first whether the GPU is lost.
    {"CUDNN_STATUS_INTERNAL_ERROR", ErrorCode::unsupported},
    {"CUDNN_STATUS_MAPPING_ERROR", ErrorCode::unsupported},
};

static ErrorCode cudnn_status_code(std::string_view name) {
  const auto* found = std::find_if(std::begin(kCudnnMeanings), std::end(kCudnnMeanings),
                                   [&](const CudnnMeaning& one) { return name.starts_with(one.prefix); });
  return found == std::end(kCudnnMeanings) ? ErrorCode::device_fault : found->code;
}

// The code of each status that the text names.
static std::vector<ErrorCode> cudnn_status_codes(std::string_view text) {
  constexpr std::string_view kLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
  std::vector<ErrorCode> codes;
  for (size_t begin = text.find("CUDNN_"); begin != std::string_view::npos;) {
    const size_t end = std::min(text.find_first_not_of(kLetters, begin), text.size());
    const std::string_view name = text.substr(begin, end - begin);
    // Its own word for one that it does not know is the latter.
    if (name == "CUDNN_UNKNOWN_STATUS" ||
        (name.starts_with("CUDNN_STATUS_") && name != "CUDNN_STATUS_SUCCESS"))
      codes.push_back(cudnn_status_code(name));
    begin = text.find("CUDNN_", end);
  }
  return codes;
}

std::optional<ErrorCode> cudnn_error_code(std::string_view message) {
  const std::string text = without_reasons(message);
  std::vector<ErrorCode> codes = cudnn_status_codes(text);
  // As CUDA words it.
  for (const char* lack : {"out of memory", "CUDA_ERROR_OUT_OF_MEMORY", "cudaErrorMemoryAllocation"}) {
    if (text.find(lack) != std::string::npos) codes.push_back(ErrorCode::out_of_memory);
  }
  for (const ErrorCode code : {ErrorCode::device_fault, ErrorCode::out_of_memory, ErrorCode::unsupported}) {
    if (std::find(codes.begin(), codes.end(), code) != codes.end()) return code;
  }
  return std::nullopt;
}

}  // namespace tessera::cuda
