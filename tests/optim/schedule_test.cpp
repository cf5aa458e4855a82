// Schedules against their closed forms.
#include "tessera/optim/schedule.h"

#include <cmath>
#include <numbers>

#include <gtest/gtest.h>

namespace tessera::testing {
namespace {

// A few roundings in double of numbers up to 1, and of cosines and powers: some 1e-15.
constexpr double kClose = 1e-14;

TEST(Schedule, ConstantIsOne) {
  EXPECT_EQ(optim::constant().factor(0), 1);
  EXPECT_EQ(optim::constant().factor(1'000'000), 1);
}

TEST(Schedule, StepFallsAtEachMilestone) {
  const optim::Schedule schedule = optim::step({10, 20}, 0.1);
  EXPECT_EQ(schedule.factor(9), 1);
  EXPECT_NEAR(schedule.factor(10), 0.1, kClose);
  EXPECT_NEAR(schedule.factor(19), 0.1, kClose);
  EXPECT_NEAR(schedule.factor(20), 0.01, kClose);
}

TEST(Schedule, CosineIsHalfAWave) {
  const optim::Schedule schedule = optim::cosine(100, 0.2);
  EXPECT_EQ(schedule.factor(0), 1);
  EXPECT_NEAR(schedule.factor(25), 0.2 + 0.8 * 0.5 * (1 + std::sqrt(0.5)), kClose);
  EXPECT_NEAR(schedule.factor(50), 0.6, kClose);
  EXPECT_NEAR(schedule.factor(100), 0.2, kClose);
  EXPECT_NEAR(schedule.factor(1000), 0.2, kClose);  // beyond the end it stays
}

// Vaswani et al. 2017, equation 3, over its largest: min(step^-0.5, step * steps^-1.5) * sqrt(steps).
TEST(Schedule, InverseSqrtIsThatOfItsPaperAfterAWarmUp) {
  constexpr int64_t kRise = 50;
  const optim::Schedule schedule = optim::warmup(kRise, optim::inverse_sqrt(kRise));
  for (const int64_t step : {1, 2, 49, 50, 51, 200, 5000}) {
    const auto now = static_cast<double>(step);
    const double expected = std::min(1 / std::sqrt(now), now * std::pow(kRise, -1.5)) * std::sqrt(kRise);
    // In the rise a step's rate is that of its number counted from 1, after it that of fairseq's updates so
    // far.
    EXPECT_NEAR(schedule.factor(step < kRise ? step - 1 : step), expected, kClose) << step;
  }
  EXPECT_EQ(optim::inverse_sqrt(0).factor(0), 1);
  EXPECT_NEAR(optim::inverse_sqrt(0).factor(4), 0.5, kClose);
}

TEST(Schedule, PolynomialFallsToItsFloor) {
  const optim::Schedule schedule = optim::polynomial(10, 2, 0.05);
  for (int64_t step = 0; step < 10; ++step) {
    const double rest = 1 - static_cast<double>(step) / 10;
    EXPECT_NEAR(schedule.factor(step), std::max(0.05, rest * rest), kClose);
  }
  EXPECT_NEAR(optim::polynomial(10, 1).factor(3), 0.7, kClose);
}

// torch.optim.lr_scheduler.OneCycleLR(max_lr=1, total_steps=100): phases end at steps 29 and 99.
TEST(Schedule, OneCycleIsTorchs) {
  const optim::Schedule schedule = optim::one_cycle(100);
  const auto expected = [](int64_t step) {
    const auto anneal = [](double start, double end, double progress) {
      return end + (start - end) / 2 * (1 + std::cos(std::numbers::pi * progress));
    };
    const auto now = static_cast<double>(step);
    return now <= 29 ? anneal(1.0 / 25, 1, now / 29) : anneal(1, 1.0 / 25 / 1e4, (now - 29) / 70);
  };
  for (int64_t step = 0; step < 100; ++step) EXPECT_NEAR(schedule.factor(step), expected(step), kClose);
  EXPECT_NEAR(schedule.factor(0), 0.04, kClose);
  EXPECT_NEAR(schedule.factor(29), 1, kClose);
  EXPECT_NEAR(schedule.factor(99), 4e-6, kClose);
}

TEST(Schedule, WarmupMultipliesALine) {
  const optim::Schedule schedule = optim::warmup(4, optim::constant());
  EXPECT_NEAR(schedule.factor(0), 0.25, kClose);
  EXPECT_NEAR(schedule.factor(3), 1, kClose);
  EXPECT_NEAR(schedule.factor(4), 1, kClose);
  // What follows counts from step 0.
  const optim::Schedule falling = optim::warmup(2, optim::cosine(10));
  EXPECT_NEAR(falling.factor(0), 0.5, kClose);
  EXPECT_NEAR(falling.factor(5), 0.5, kClose);
  EXPECT_NEAR(optim::warmup(2, optim::constant(), 0.5).factor(0), 0.75, kClose);
}

TEST(Schedule, TinyRunsAreFiniteEverywhere) {
  for (int64_t total : {1, 2, 3}) {
    for (const optim::Schedule& schedule :
         {optim::cosine(total), optim::polynomial(total), optim::one_cycle(total),
          optim::warmup(total, optim::one_cycle(total))}) {
      for (int64_t step = 0; step <= total; ++step) {
        EXPECT_TRUE(std::isfinite(schedule.factor(step))) << schedule.name << " " << total << " " << step;
        EXPECT_GE(schedule.factor(step), 0) << schedule.name;
        EXPECT_LE(schedule.factor(step), 1 + kClose) << schedule.name;
      }
    }
  }
}

}  // namespace
}  // namespace tessera::testing
