// A head of many rows and classes, whose logits never lie beside each other.
#include "device_cuda/cuda_case.h"
#include "device_cuda/head_case.h"
#include "device_cuda/plan_case.h"

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
  kHead.expect_same(run({}), run({"split_logits"}));
}

}  // namespace
}  // namespace tessera::testing
