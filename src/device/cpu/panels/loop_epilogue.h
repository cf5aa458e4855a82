// What our own loops of convolutions and matrix products do to a sum: add a bias, add a residual, keep it
// within limits, in this order, before they store it, and apply any other activation to what they have
// stored. NaN stays NaN.
#pragma once

#include <limits>
#include <optional>

#include "tessera/compile/kernel.h"
#include "tessera/device/common/contraction_pattern.h"

#include "device/cpu/panels/loop_activation.h"

namespace tessera::cpu {

// At a run. Limits that are infinite are none.
struct LoopEpilogue {
  const float* bias = nullptr;      // [channels], or none
  const float* residual = nullptr;  // shaped as the result, or none
  float low = -std::numeric_limits<float>::infinity();
  float high = std::numeric_limits<float>::infinity();
  LoopActivation activation = LoopActivation::none;

  bool is_limited() const {
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    return low != -kInfinity || high != kInfinity;
  }
  // For a part of the result that begins at an element, and at a channel.
  LoopEpilogue from(int64_t element, int64_t channel) const;
};

// As a node asks for it.
struct EpilogueRequest {
  std::optional<size_t> bias;  // places among the node's inputs
  std::optional<size_t> residual;
  LoopEpilogue limits;  // and activation, without memory

  bool is_empty() const;
  LoopEpilogue of(const KernelArguments& arguments) const;
};

// Whether the loops can end with it.
bool loops_end_with(const Node& activation);
// Whether the loops can end with it and no library can: relu6 and clip in fp32, of which oneDNN's lose NaN.
bool only_loops_end_with(const Node& activation);

// Of a convolution or matrix product, plain or of contraction_pattern(). Refuses what does not end so, and
// types other than fp32.
EpilogueRequest read_loop_epilogue(const Node& node, const backend::FusedChain& chain);

// Whether the chain ends with an activation that only_loops_end_with().
bool needs_loops(const backend::FusedChain& chain);

}  // namespace tessera::cpu
