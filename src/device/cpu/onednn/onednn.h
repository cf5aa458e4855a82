// What all kernels made of oneDNN primitives share: the engine, memory descriptors, and one kernel class that
// runs any primitive, reordering operands where the primitive wants them otherwise than the graph stores
// them.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <dnnl.hpp>

#include "tessera/compile/kernel.h"
#include "tessera/device/common/refusal.h"

namespace tessera::cpu {

using backend::refuse_unless;

const dnnl::engine& onednn_engine();
dnnl::stream& onednn_stream();

// The type's name in oneDNN. Refuses types that it does not know (fp64, int64, bool).
dnnl::memory::data_type onednn_type(DataType type);

// The type in which primitives compute on values of `type` on this machine: fp32 where the processor lacks
// instructions for a 16-bit type. Throws as onednn_type.
dnnl::memory::data_type compute_type(DataType type);

// Sums of `depth` products of bytes must be exact: refuses those that oneDNN computes otherwise.
void refuse_inexact_sums(DataType a, DataType b, int64_t depth);

// A dense row-major descriptor.
dnnl::memory::desc dense(const dnnl::memory::dims& dims, dnnl::memory::data_type type);
dnnl::memory::desc strided(const dnnl::memory::dims& dims, dnnl::memory::data_type type,
                           const dnnl::memory::dims& strides);
// The layout is the primitive's choice.
dnnl::memory::desc any_layout(const dnnl::memory::dims& dims, dnnl::memory::data_type type);

// Strict arithmetic and scratch memory from the caller.
dnnl::primitive_attr default_attributes();

// One argument of a primitive.
struct OnednnOperand {
  int argument = 0;  // DNNL_ARG_...
  bool is_output = false;
  size_t index = 0;           // of the node's input or output
  dnnl::memory::desc stored;  // as the node has it
  dnnl::memory::desc wanted;  // as the primitive has it
};

struct OnednnPlan {
  dnnl::primitive_desc descriptor;
  std::vector<OnednnOperand> operands;
};

// Makes a plan, or refuses, saying why there is none.
using OnednnPlanner = std::function<OnednnPlan(const KernelRequest& request)>;

KernelCandidate onednn_candidate(const std::string& name, const OnednnPlanner& planner);

// Whether the input never changes, so that the kernel may have it packed.
inline bool is_frozen_input(const KernelRequest& request, size_t index) {
  return index < request.frozen_inputs.size() && request.frozen_inputs[index];
}

}  // namespace tessera::cpu
