// A head of many rows and classes, whose logits never lie beside each other.
#include "device_cuda/cuda_case.h"
#include "device_cuda/head_case.h"
#include "device_cuda/plan_case.h"
#include "support/compare.h"

namespace tessera::testing {
namespace {

TEST(CudaSplitLogits, ThePartsLieWhereTheFirstOneDid) {
  constexpr HeadCase kHead{.rows = 8190, .width = 256, .classes = 32768};
  const auto device = Device::open("cuda:plan-h200");
  const auto parts = kHead.compiled(device);
  const auto whole = kHead.compiled(device, {"split_logits"});
  const auto count_of = [](const Executable& executable, std::string_view name) {
    return count_nodes(executable, [&](const NodeReport& node) { return node.operator_name == name; });
  };
  EXPECT_EQ(count_of(*whole, "fused:cross_entropy"), 1U);
  EXPECT_EQ(count_of(*parts, "fused:cross_entropy"), 4U);
  // Three quarters of the logits less, and the sum of the weight's gradient beside what is added to it.
  const auto logits = 2.0 * kHead.rows * kHead.classes, gradient = 2.0 * kHead.classes * kHead.width;
  EXPECT_LT(static_cast<double>(parts->memory_plan().peak_bytes),
            static_cast<double>(whole->memory_plan().peak_bytes) - 0.75 * logits + 2 * gradient);
}

TEST(CudaSplitLogits, StayWholeWhereTheyAreFew) {
  constexpr HeadCase kHead{.rows = 2048, .width = 256, .classes = 32768};
  const auto executable = kHead.compiled(Device::open("cuda:plan-h200"));
  EXPECT_EQ(count_nodes(*executable,
                        [](const NodeReport& node) { return node.operator_name == "fused:cross_entropy"; }),
            1U);
}

TEST(CudaSplitLogits, GiveWhatAllRowsGive) {
  TESSERA_NEEDS_GPU();
  constexpr HeadCase kHead{.rows = 8190, .width = 256, .classes = 20008};
  const auto run = [&](const std::set<std::string>& disabled) {
    return kHead.run(*kHead.compiled(gpu_or_null(), disabled), gpu_or_null());
  };
  const std::map<std::string, Tensor> parts = run({});
  const std::map<std::string, Tensor> whole = run({"split_logits"});
  // Products of other sizes may be made by kernels that add up in another order, so that logits are rounded
  // to the other side, by 2^-7 of the 2 to 4 that they are at most; a loss by twice that.
  expect_close(parts.at("loss"), whole.at("loss"), {.absolute = 0.06}, "loss");
  expect_close(parts.at("dx"), whole.at("dx"), {.absolute = 2e-3, .relative = 0.02}, "dx");
  // Rounded once more with each part.
  expect_close(parts.at("dw"), whole.at("dw"), {.absolute = 0.02, .relative = 0.02}, "dw");
  expect_close(parts.at("db"), whole.at("db"), {.absolute = 0.02, .relative = 0.02}, "db");
  int64_t others = 0;
  for (int64_t row = 0; row < kHead.rows; ++row)
    others += parts.at("likeliest").at(row) == whole.at("likeliest").at(row) ? 0 : 1;
  EXPECT_LT(others, kHead.rows / 50) << "only of logits that are nearly equal";
}

}  // namespace
}  // namespace tessera::testing
