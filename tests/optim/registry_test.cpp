// What recipes choose from: every description makes what it says.
#include "tessera/optim/registry.h"

#include <gtest/gtest.h>

#include "support/expect_error.h"

namespace tessera::optim {
namespace {

Options defaults_of(const std::vector<Option>& options) {
  Options values;
  for (const Option& option : options) {
    if (option.unset.empty()) values.set(option.key, option.value);
  }
  return values;
}

TEST(OptimizerRegistry, EachMakesTheOptimizerOfItsName) {
  EXPECT_EQ(optimizers().names(),
            (std::vector<std::string>{"adagrad", "adam", "adamw", "lamb", "lars", "rmsprop", "sgd"}));
  for (const OptimizerDescription* description : optimizers().all()) {
    Options values = defaults_of(description->options);
    EXPECT_EQ(description->create(values).name, description->name);
    values.set("learning_rate", 0.375);
    EXPECT_EQ(description->create(values).learning_rate, 0.375) << description->name;
    EXPECT_TRUE(!description->check || description->check(values).empty()) << description->name;
  }
}

TEST(OptimizerRegistry, RefusesWhatContradictsItself) {
  const OptimizerDescription& sgd = optimizers().get("sgd");
  Options values = defaults_of(sgd.options);
  values.set("nesterov", true);
  EXPECT_TRUE(sgd.check(values).empty());
  values.set("momentum", 0.0);
  ASSERT_EQ(sgd.check(values).size(), 1U);
  EXPECT_EQ(sgd.check(values)[0].keys, (std::vector<std::string>{"momentum", "nesterov"}));
}

TEST(ScheduleRegistry, InverseSqrtFallsFromWhereItsRiseEnds) {
  const ScheduleDescription& description = schedules().get("inverse_sqrt");
  Options values = defaults_of(description.options);
  values.set("initial", 0.0);
  values.set("warmup_epochs", 0.5);
  const Schedule schedule = description.create(values, 100, 10);
  EXPECT_EQ(schedule.factor(0), 0.2);
  EXPECT_EQ(schedule.factor(4), 1);
  EXPECT_EQ(schedule.factor(5), 1);
  EXPECT_EQ(schedule.factor(20), 0.5);
  values.set("warmup_steps", int64_t{5});
  EXPECT_EQ(description.check(values).size(), 1U);
}

// A warm-up of two epochs of ten steps, and the schedule itself after it.
TEST(ScheduleRegistry, EachMakesTheScheduleOfItsName) {
  for (const ScheduleDescription* description : schedules().all()) {
    Options values = defaults_of(description->options);
    if (description->name == "step") values.set("milestones", std::vector<double>{4, 8});
    const Schedule plain = description->create(values, 100, 10);
    EXPECT_EQ(plain.name, description->name);
    EXPECT_TRUE(!description->check || description->check(values).empty()) << description->name;
    // What falls by the length of the rise has a test of its own.
    if (!values.has("warmup_epochs") || description->name == "inverse_sqrt") continue;
    values.set("warmup_epochs", 2.0);
    values.set("initial", 0.0);
    const Schedule warm = description->create(values, 100, 10);
    // Numbers of at most one, computed by a handful of operations in double.
    EXPECT_NEAR(warm.factor(9), 0.5 * plain.factor(9), 8 * 0x1p-53) << description->name;
    EXPECT_EQ(warm.factor(20), plain.factor(20)) << description->name;
    values.set("warmup_steps", int64_t{5});
    EXPECT_EQ(description->check(values).size(), 1U) << description->name;
  }
}

TEST(ScheduleRegistry, MilestonesAreInEpochs) {
  const ScheduleDescription& step = schedules().get("step");
  Options values = defaults_of(step.options);
  EXPECT_EQ(step.check(values).size(), 1U);
  values.set("milestones", std::vector<double>{1.5});
  values.set("gamma", 0.5);
  const Schedule schedule = step.create(values, 100, 10);
  EXPECT_EQ(schedule.factor(14), 1);
  EXPECT_EQ(schedule.factor(15), 0.5);
  values.set("milestones", std::vector<double>{3, 3});
  EXPECT_EQ(step.check(values).size(), 1U);
}

}  // namespace
}  // namespace tessera::optim
