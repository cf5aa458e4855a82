// What kind of error a status of NVIDIA's libraries is: the one place that knows.
#pragma once

#include <optional>
#include <string_view>

#include "tessera/base/error.h"

#include "device/cuda/runtime/libraries.h"

namespace tessera::cuda {

// out_of_memory; unsupported: there is no GPU that can be used here, or the library does not do this;
// internal: we asked for what cannot be; device_fault: all else, what is not known among it.
ErrorCode error_code(CUresult status);
ErrorCode error_code(nvrtcResult status);
ErrorCode error_code(cublasStatus_t status);
// cuDNN's frontend gives statuses by name, within its messages. Of several the gravest; none where the
// message names none, which is then the frontend's own.
std::optional<ErrorCode> cudnn_error_code(std::string_view message);

// What to do about it; "" where nothing is known.
std::string_view advice_for(CUresult status);

}  // namespace tessera::cuda
