// A single pass with all that belongs to it: the report, the verifier and the dump.
#pragma once

#include "tessera/passes/pass.h"

namespace tessera {

// As run_pipeline() runs each that is not disabled, and throws.
PassReport run_pass(Graph& graph, const Pass& pass, const PassContext& context,
                    const PipelineOptions& options);

// Of no pipeline(): it runs where kernels are chosen (src/compile/planned_steps.h), and is disabled as those.
inline constexpr const char* kExpandKernels = "expand_kernels";

}  // namespace tessera
