// What cuDNN's plans need beside their operands, as text before them.
#include "device/cuda/cudnn/plan_tensors.h"

#include <gtest/gtest.h>

namespace tessera::cuda {
namespace {

PlanTensors some_tensors() {
  return {.scalars = {{.number = 12, .bits = 0x3f800000}, {.number = 15, .bits = ~uint64_t{0}}},
          .spaces = {{.number = 13, .offset = 0}, {.number = 14, .offset = 640, .words = 7, .value = 100}},
          .bytes = 668};
}

TEST(PlanTensors, AreReadAsTheyWereWritten) {
  const std::string plan = "{\"engine\": 5}\nand more\n";
  const auto parsed = parse_plan_with_tensors(with_tensors(some_tensors(), plan));
  ASSERT_TRUE(parsed.has_value());
  EXPECT_EQ(parsed->tensors, some_tensors());
  EXPECT_EQ(parsed->plan, plan);
}

TEST(PlanTensors, LeaveThePlansTextAloneWhereThereAreNone) {
  EXPECT_EQ(with_tensors({}, "{}"), "{}");
  const auto parsed = parse_plan_with_tensors("{}");
  ASSERT_TRUE(parsed.has_value());
  EXPECT_TRUE(parsed->tensors.empty());
  EXPECT_EQ(parsed->plan, "{}");
}

TEST(PlanTensors, AreRefusedWhereNumbersAreMissingOrTooMany) {
  for (const char* text : {"tensors 4 1 0 12\n{}", "tensors 4 0 1 13 0 0\n{}", "tensors 4 0 0 1\n{}",
                           "tensors 4 x 0\n{}", "tensors 4 0 0", "tensors\n{}"}) {
    EXPECT_FALSE(parse_plan_with_tensors(text).has_value()) << text;
  }
}

}  // namespace
}  // namespace tessera::cuda
