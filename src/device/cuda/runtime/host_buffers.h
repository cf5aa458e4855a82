// Inputs and outputs on their way between pinned host memory and the GPU, beside the other work of a queue.
#pragma once

#include <memory>

#include "tessera/compile/queue.h"

#include "device/cuda/runtime/queue.h"

namespace tessera::cuda {

// Twice the memory on the GPU and twice on the host: while a run reads the present contents, the next are
// copied by a stream of their own, and the host may already write those after them. Throws
// Error(out_of_memory).
std::unique_ptr<InputBuffer> make_input_buffer(CudaQueue& queue, int64_t bytes);

std::unique_ptr<OutputBuffer> make_output_buffer(CudaQueue& queue, int64_t bytes);

}  // namespace tessera::cuda
