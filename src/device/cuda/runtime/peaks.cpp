#include "device/cuda/runtime/peaks.h"

namespace tessera::cuda {
namespace {

// Of one multiprocessor in one clock, from NVIDIA's white papers on each architecture.
struct Rates {
  double fp32 = 0;    // two for each core
  double tensor = 0;  // fp16 and bf16 operands, fp32 sums
  // Data sheets count tensor cores at a lower clock than the others: 1.83 of 1.98 GHz on an H100 SXM.
  double tensor_clock = 1;
};

const std::map<int, Rates>& rates() {
  static const std::map<int, Rates> table{
      {80, {.fp32 = 128, .tensor = 2048, .tensor_clock = 1}},
      {90, {.fp32 = 256, .tensor = 4096, .tensor_clock = 1.83 / 1.98}},
      {100, {.fp32 = 256, .tensor = 8192, .tensor_clock = 15.0 / 16}},
  };
  return table;
}

}  // namespace

std::map<Precision, double> flops_per_second(const GpuTraits& traits) {
  const auto found = rates().find(traits.architecture);
  const double clocks = traits.multiprocessors * traits.clock_hertz;
  if (found == rates().end() || clocks <= 0) return {};
  const double tensor = clocks * found->second.tensor * found->second.tensor_clock;
  return {{Precision::fp32, clocks * found->second.fp32},
          {Precision::tf32, tensor / 2},
          {Precision::fp16, tensor},
          {Precision::bf16, tensor}};
}

}  // namespace tessera::cuda
