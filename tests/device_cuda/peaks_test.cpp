// The peaks of cards beside those of NVIDIA's data sheets (dense, SXM modules).
#include "device_cuda/cuda_case.h"

namespace tessera::testing {
namespace {

struct DataSheet {
  const char* card;
  double terabytes;         // per second
  double fp32, tf32, fp16;  // TFLOP/s
};

TEST(CudaPeaks, AreThoseOfTheDataSheets) {
  constexpr DataSheet kSheets[] = {{"cuda:plan-a100", 2.04, 19.5, 156, 312},
                                   {"cuda:plan-h100", 3.35, 67, 494, 989},
                                   {"cuda:plan-h200", 4.8, 67, 494, 989},
                                   {"cuda:plan-b200", 8, 75, 1125, 2250}};
  for (const DataSheet& sheet : kSheets) {
    const DeviceDescription card = Device::open(sheet.card)->description();
    const auto expect_near = [&](double value, double expected) {
      // Data sheets have two to four digits.
      EXPECT_NEAR(value * 1e-12, expected, 0.005 * expected) << sheet.card;
    };
    expect_near(card.bytes_per_second, sheet.terabytes);
    expect_near(card.flops_per_second.at(Precision::fp32), sheet.fp32);
    expect_near(card.flops_per_second.at(Precision::tf32), sheet.tf32);
    expect_near(card.flops_per_second.at(Precision::fp16), sheet.fp16);
    EXPECT_EQ(card.flops_per_second.at(Precision::bf16), card.flops_per_second.at(Precision::fp16));
  }
}

TEST(CudaPeaks, OfTheGpuComeFromItsDriver) {
  TESSERA_NEEDS_GPU();
  const DeviceDescription gpu = gpu_or_null()->description();
  EXPECT_GT(gpu.bytes_per_second, 1e11);
  EXPECT_LT(gpu.bytes_per_second, 1e14);
  for (const auto& [precision, flops] : gpu.flops_per_second) {
    EXPECT_GT(flops, 1e12) << to_string(precision);
    EXPECT_LT(flops, 1e17) << to_string(precision);
  }
}

}  // namespace
}  // namespace tessera::testing
