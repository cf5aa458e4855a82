// Translation of CUDA's status codes into errors with advice.
#pragma once

#include <string>

#include "device/cuda/runtime/libraries.h"

namespace tessera::cuda {

// Throws an Error of the status's code (status.h) saying what failed and what to do about it.
void check(CUresult status, const std::string& what);
void check(nvrtcResult status, const std::string& what);
void check(cublasStatus_t status, const std::string& what);

}  // namespace tessera::cuda
