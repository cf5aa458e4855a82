// What the tests of the CUDA backend share: a GPU where there is one, and a card that is only planned for.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "device/cuda/kernel_registry.h"
#include "device/cuda/runtime/context.h"
#include "device_cuda/text_compiler.h"
#include "support/device_case.h"
#include "support/gpu.h"

namespace tessera::testing {

// Null on a machine without a GPU.
inline std::shared_ptr<Device> gpu_or_null() {
  static const std::shared_ptr<Device> device = opened_or_null([] { return Device::open("cuda"); });
  return device;
}

// Skips, for developers without a GPU run these tests with all others. Where the GPU is what is tested
// nothing is skipped: `./test --gpu` refuses to start without one.
#define TESSERA_NEEDS_GPU() \
  if (gpu_or_null() == nullptr) GTEST_SKIP() << "no GPU"

// Compiles whatever the candidates of the node would generate for a card, where products may be in TF32 or
// not; returns how many sources.
inline size_t compile_candidates(const Node& node, bool tf32 = false, const std::string& model = "h100") {
  cuda::Context card(model);
  size_t compiled = 0;
  for (const KernelCandidate& candidate : cuda::cuda_candidates(node, card)) {
    const KernelRequest request{
        .node = node, .frozen_inputs = std::vector<bool>(node.inputs().size(), false), .tf32 = tf32};
    if (!candidate.refusal(request).empty()) continue;
    const std::unique_ptr<Kernel> kernel = candidate.create(request);
    for (const std::string& source : card.modules().sources()) {
      EXPECT_FALSE(cuda::machine_code(source, card.traits().architecture).empty()) << candidate.name;
      EXPECT_EQ(missing_wait(source), "");
      ++compiled;
    }
  }
  return compiled;
}

}  // namespace tessera::testing
