// Inputs and outputs on their way between pinned host memory and the GPU, beside its other work.
#pragma once

#include <memory>

#include "tessera/compile/device.h"

#include "device/cuda/runtime/context.h"

namespace tessera::cuda {

// Twice the memory on the GPU and twice on the host: while a run reads the present contents, the next are
// copied by a stream of their own, and the host may already write those after them. Throws
// Error(out_of_memory).
std::unique_ptr<InputBuffer> make_input_buffer(std::shared_ptr<Context> context, int64_t bytes);

std::unique_ptr<OutputBuffer> make_output_buffer(std::shared_ptr<Context> context, int64_t bytes);

}  // namespace tessera::cuda
