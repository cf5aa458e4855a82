// Which error a status of NVIDIA's libraries is.
#include "device/cuda/runtime/status.h"

#include <gtest/gtest.h>

namespace tessera::cuda {
namespace {

TEST(DriverStatus, TellsLackOfMemoryMissingGpusAndFaultsApart) {
  EXPECT_EQ(error_code(CUDA_ERROR_OUT_OF_MEMORY), ErrorCode::out_of_memory);
  for (const CUresult status :
       {CUDA_ERROR_NO_DEVICE, CUDA_ERROR_INVALID_DEVICE, CUDA_ERROR_DEVICE_UNAVAILABLE,
        CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE,
        CUDA_ERROR_UNSUPPORTED_PTX_VERSION, CUDA_ERROR_NO_BINARY_FOR_GPU, CUDA_ERROR_STUB_LIBRARY,
        CUDA_ERROR_NOT_INITIALIZED, CUDA_ERROR_SYSTEM_NOT_READY, CUDA_ERROR_NOT_SUPPORTED,
        CUDA_ERROR_OPERATING_SYSTEM, CUDA_ERROR_NOT_PERMITTED, CUDA_ERROR_DEVICE_NOT_LICENSED})
    EXPECT_EQ(error_code(status), ErrorCode::unsupported) << status;
  for (const CUresult status :
       {CUDA_ERROR_ILLEGAL_ADDRESS, CUDA_ERROR_LAUNCH_FAILED, CUDA_ERROR_LAUNCH_TIMEOUT,
        CUDA_ERROR_MISALIGNED_ADDRESS, CUDA_ERROR_ILLEGAL_INSTRUCTION, CUDA_ERROR_INVALID_ADDRESS_SPACE,
        CUDA_ERROR_INVALID_PC, CUDA_ERROR_ASSERT, CUDA_ERROR_CONTEXT_IS_DESTROYED,
        CUDA_ERROR_ECC_UNCORRECTABLE, CUDA_ERROR_NVLINK_UNCORRECTABLE, CUDA_ERROR_HARDWARE_STACK_ERROR}) {
    EXPECT_EQ(error_code(status), ErrorCode::device_fault) << status;
    EXPECT_NE(advice_for(status), "") << status;
  }
  for (const CUresult status : {CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_INVALID_HANDLE, CUDA_ERROR_NOT_FOUND,
                                CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED})
    EXPECT_EQ(error_code(status), ErrorCode::internal) << status;
}

// A newer driver has statuses that this was not built with. Beyond 1023, the most that the bits of those that
// it was built with hold, C++ knows no value of the type.
TEST(DriverStatus, WhatIsNotKnownIsAFault) {
  const auto unknown = static_cast<CUresult>(1020);
  EXPECT_EQ(error_code(CUDA_ERROR_UNKNOWN), ErrorCode::device_fault);
  EXPECT_EQ(error_code(unknown), ErrorCode::device_fault);
  EXPECT_EQ(advice_for(unknown), "");
}

TEST(CublasStatus, RefusesOnlyWhatItDoesNotDo) {
  EXPECT_EQ(error_code(CUBLAS_STATUS_ALLOC_FAILED), ErrorCode::out_of_memory);
  for (const cublasStatus_t status :
       {CUBLAS_STATUS_NOT_SUPPORTED, CUBLAS_STATUS_ARCH_MISMATCH, CUBLAS_STATUS_INVALID_VALUE})
    EXPECT_EQ(error_code(status), ErrorCode::unsupported) << status;
  for (const cublasStatus_t status : {CUBLAS_STATUS_EXECUTION_FAILED, CUBLAS_STATUS_INTERNAL_ERROR,
                                      CUBLAS_STATUS_NOT_INITIALIZED, CUBLAS_STATUS_MAPPING_ERROR})
    EXPECT_EQ(error_code(status), ErrorCode::device_fault) << status;
}

TEST(CudnnStatus, IsReadFromMessages) {
  const auto code = [](const char* text) { return cudnn_error_code(text); };
  for (const char* text :
       {"x failed with message: , and code: CUDNN_STATUS_NOT_SUPPORTED_SHAPE",
        "CUDNN_STATUS_NOT_SUPPORTED_AS_A_LATER_VERSION_SAYS", "CUDNN_STATUS_SERIALIZATION_VERSION_MISMATCH",
        "finalize cudnn_status: CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER",
        "cudnn_status: CUDNN_STATUS_INTERNAL_ERROR_COMPILATION_FAILED",
        "CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH"})
    EXPECT_EQ(code(text), ErrorCode::unsupported) << text;
  for (const char* text :
       {"and code: CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED",
        "CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED", "CUDNN_STATUS_ALLOC_FAILED",
        "cudaMalloc failed with cudaErrorMemoryAllocation: out of memory"})
    EXPECT_EQ(code(text), ErrorCode::out_of_memory) << text;
  for (const char* text : {"and code: CUDNN_STATUS_EXECUTION_FAILED",
                           "CUDNN_STATUS_EXECUTION_FAILED_CUDA_DRIVER", "CUDNN_STATUS_NOT_INITIALIZED",
                           "CUDNN_STATUS_ALLOC_FAILED after CUDNN_STATUS_EXECUTION_FAILED_CUDART"})
    EXPECT_EQ(code(text), ErrorCode::device_fault) << text;
}

TEST(CudnnStatus, WhatIsNotKnownIsAFault) {
  for (const char* text : {"x failed with message: , and code: CUDNN_STATUS_OF_A_LATER_VERSION",
                           "finalize cudnn_status: CUDNN_UNKNOWN_STATUS", "CUDNN_STATUS_RUNTIME_IN_PROGRESS",
                           "CUDNN_STATUS_NOT_SUPPORTED\nCUDNN_STATUS_OF_A_LATER_VERSION"})
    EXPECT_EQ(cudnn_error_code(text), ErrorCode::device_fault) << text;
}

// The caller knows which of its calls it was.
TEST(CudnnStatus, IsNoneWhereTheMessageNamesNone) {
  for (const char* text : {"No valid engine configs for Conv_", "execute of CUDNN_BACKEND_ENGINE_DESCRIPTOR",
                           "Warning: CUDNN_STATUS_SUCCESS"})
    EXPECT_EQ(cudnn_error_code(text), std::nullopt) << text;
}

// As cuDNN 9 words the refusal of a grouped convolution in bf16; it gives conditions of its source for
// reasons.
TEST(CudnnStatus, IsNotReadFromReasons) {
  EXPECT_EQ(cudnn_error_code(
                "No valid engine configs for ConvBwdFilter_\n"
                "{\"engineId\":2,\"smVersion\":900,\"knobChoices\":{}}\n"
                "Warning: CUDNN_STATUS_NOT_SUPPORTED_GRAPH_PATTERN; Reason: is_group_conv\n"
                "Warning: CUDNN_STATUS_NOT_SUPPORTED; Reason: (CUDNN_STATUS_NOT_INITIALIZED == status) || "
                "(CUDNN_STATUS_NOT_SUPPORTED == ((status) / 1000 * 1000))\n"),
            ErrorCode::unsupported);
  EXPECT_EQ(cudnn_error_code("Warning: CUDNN_STATUS_NOT_SUPPORTED; Reason: is_group_conv\n"
                             "Error: CUDNN_STATUS_EXECUTION_FAILED_CUDA_DRIVER; Reason: cuStatus\n"),
            ErrorCode::device_fault);
}

}  // namespace
}  // namespace tessera::cuda
