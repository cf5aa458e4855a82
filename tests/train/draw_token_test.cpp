#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tessera/base/random.h"
#include "tessera/train/generation.h"

#include "support/expect_error.h"

namespace tessera::testing {
namespace {

using train::draw_token;

constexpr int64_t kDraws = 20000;

// How often each of the tokens is drawn.
template <size_t Count>
std::array<double, Count> shares(const std::array<float, Count>& logits, const train::Sampling& sampling) {
  std::array<double, Count> result{};
  for (int64_t step = 0; step < kDraws; ++step)
    result[static_cast<size_t>(draw_token(logits, sampling, step))] += 1.0 / kDraws;
  return result;
}

// Within four deviations of what the softmax of the logits divided by the temperature says.
TEST(DrawToken, FollowsTheProbabilities) {
  const std::array<float, 3> logits{0, 1, 2};
  for (const double temperature : {0.5, 1.0, 2.0}) {
    const std::array<double, 3> drawn = shares(logits, {.temperature = temperature});
    double sum = 0;
    for (const float logit : logits) sum += std::exp(logit / temperature);
    for (size_t i = 0; i < logits.size(); ++i) {
      const double share = std::exp(logits[i] / temperature) / sum;
      EXPECT_NEAR(drawn[i], share, 4 * std::sqrt(share * (1 - share) / kDraws)) << temperature << " " << i;
    }
  }
}

TEST(DrawToken, TakesTheLikeliestWhereNothingIsLeftToChance) {
  const std::array<float, 4> logits{1, 3, 3, 2};
  for (int64_t step = 0; step < 50; ++step) {
    EXPECT_EQ(draw_token(logits, {.temperature = 0}, step), 1) << "the first of equal ones";
    EXPECT_EQ(draw_token(logits, {.top_k = 1}, step), 1);
    EXPECT_EQ(draw_token(logits, {.top_p = 1e-6}, step), 1);
  }
  const std::array<float, 3> sure{0, INFINITY, -INFINITY};
  EXPECT_EQ(draw_token(sure, {}, 0), 1);
}

TEST(DrawToken, LeavesOutWhatIsUnlikely) {
  const std::array<float, 4> logits{std::log(4.0F), std::log(3.0F), std::log(2.0F), std::log(1.0F)};
  const std::array<double, 4> two = shares(logits, {.top_k = 2});
  EXPECT_NEAR(two[0], 4.0 / 7, 0.02);
  EXPECT_EQ(two[2] + two[3], 0);
  // 0.4 and 0.3 are less than 0.75 together, so that the third is among them.
  const std::array<double, 4> three = shares(logits, {.top_p = 0.75});
  EXPECT_NEAR(three[2], 2.0 / 9, 0.02);
  EXPECT_EQ(three[3], 0);
}

TEST(DrawToken, DependsOnSeedAndStepAlone) {
  const std::array<float, 8> logits{};
  int64_t other_seed = 0, other_step = 0;
  for (int64_t step = 0; step < 100; ++step) {
    const int64_t token = draw_token(logits, {.seed = 3}, step);
    EXPECT_EQ(token, draw_token(logits, {.seed = 3}, step));
    other_seed += token != draw_token(logits, {.seed = 4}, step) ? 1 : 0;
    other_step += token != draw_token(logits, {.seed = 3}, step + 1) ? 1 : 0;
  }
  EXPECT_GT(other_seed, 50);
  EXPECT_GT(other_step, 50);
}

TEST(DrawToken, RefusesWhatMeansNothing) {
  const std::array<float, 2> logits{0, 1};
  EXPECT_ERROR(draw_token({}, {}, 0), ErrorCode::invalid_argument, "no tokens");
  EXPECT_ERROR(draw_token(logits, {.temperature = -1}, 0), ErrorCode::invalid_argument, "temperature of -1");
  EXPECT_ERROR(draw_token(logits, {.top_k = -1}, 0), ErrorCode::invalid_argument, "-1 likeliest");
  EXPECT_ERROR(draw_token(logits, {.top_p = 0}, 0), ErrorCode::invalid_argument, "probability of 0");
  EXPECT_ERROR(draw_token(std::array<float, 2>{0, NAN}, {}, 0), ErrorCode::not_finite, "not a number");
  EXPECT_ERROR(draw_token(std::array<float, 2>{-INFINITY, -INFINITY}, {}, 0), ErrorCode::not_finite,
               "no token");
}

// The drawing as it is meant: all tokens in order, one weight after the other.
int64_t plainly_drawn(std::span<const float> logits, const train::Sampling& sampling, int64_t step) {
  std::vector<size_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  const float highest = std::ranges::max(logits);
  const bool is_cut = 0 < sampling.top_k && sampling.top_k < std::ssize(logits);
  // Of equal ones the first is the likelier.
  if (sampling.temperature == 0 || is_cut || sampling.top_p < 1)
    std::ranges::stable_sort(order, [&](size_t a, size_t b) { return logits[a] > logits[b]; });
  if (sampling.temperature == 0) return static_cast<int64_t>(order.front());
  if (is_cut) order.resize(static_cast<size_t>(sampling.top_k));
  std::vector<double> weights;
  for (const size_t token : order) {
    const double below = static_cast<double>(logits[token]) - highest;
    weights.push_back(logits[token] == highest ? 1 : std::exp(below / sampling.temperature));
  }
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  double kept = 0;
  size_t count = 0;
  while (count < weights.size() && (count == 0 || kept < sampling.top_p * sum)) kept += weights[count++];
  constexpr uint64_t kStream = 7;
  double left = kept * Random(sampling.seed, kStream).uniform(static_cast<uint64_t>(step));
  for (size_t i = 0; i + 1 < count; ++i) {
    left -= weights[i];
    if (left < 0) return static_cast<int64_t>(order[i]);
  }
  return static_cast<int64_t>(order[count - 1]);
}

struct LogitsCase {
  std::string name;
  size_t tokens;
  double deviation;
  double step = 0;     // above 0: of which they are multiples, so that many are equal
  int64_t hidden = 0;  // of so many one is minus infinity
  int64_t sure = 0;    // of so many one is infinity
};

std::vector<float> logits_of(const LogitsCase& own, uint64_t seed) {
  const Random random(seed, 1);
  std::vector<float> logits;
  for (size_t i = 0; i < own.tokens; ++i) {
    double logit = own.deviation * random.normal(i);
    if (own.step > 0) logit = own.step * std::round(logit / own.step);
    const auto is_each = [&](int64_t period) {
      return period > 0 && random.word(own.tokens + i) % static_cast<uint64_t>(period) == 0;
    };
    if (is_each(own.hidden)) logit = -INFINITY;
    if (is_each(own.sure)) logit = INFINITY;
    logits.push_back(static_cast<float>(logit));
  }
  return logits;
}

std::vector<train::Sampling> all_samplings() {
  std::vector<train::Sampling> result;
  for (const double temperature : {0.0, 1e-310, 0.1, 0.8, 1.7, 1e305}) {
    for (const int64_t top_k : {0, 1, 40, 700}) {
      for (const double top_p : {1.0, 0.999, 0.95, 0.3})
        result.push_back({.temperature = temperature, .top_k = top_k, .top_p = top_p, .seed = 5});
    }
  }
  return result;
}

void expect_plainly_drawn(const LogitsCase& own, int64_t draws,
                          const std::vector<train::Sampling>& samplings = all_samplings()) {
  for (int64_t step = 0; step < draws; ++step) {
    const std::vector<float> logits = logits_of(own, static_cast<uint64_t>(step));
    for (const train::Sampling& sampling : samplings) {
      EXPECT_EQ(draw_token(logits, sampling, step), plainly_drawn(logits, sampling, step))
          << fmt::format("{}: temperature {}, top_k {}, top_p {}, step {}", own.name, sampling.temperature,
                         sampling.top_k, sampling.top_p, step);
    }
  }
}

// Weights are rounded otherwise and added up in another order, by less than 1e-11 of their sum together, of
// which the drawn shares are multiples of 2^-24.
TEST(DrawToken, DrawsWhatAllTokensInOrderGive) {
  expect_plainly_drawn({"one token", 1, 1}, 2);
  expect_plainly_drawn({"two", 2, 1}, 20);
  expect_plainly_drawn({"equal ones", 77, 0}, 20);
  expect_plainly_drawn({"fewer than a block", 150, 3}, 20);
  expect_plainly_drawn({"fewer than lanes", 700, 2, 0.5}, 10);
  expect_plainly_drawn({"steep ones", 1100, 300}, 5);
  expect_plainly_drawn({"hidden ones", 3000, 3, 0, 3}, 2);
  expect_plainly_drawn({"sure ones", 3000, 3, 0, 3, 50}, 2);
  expect_plainly_drawn({"many equal ones", 3000, 1, 1}, 2);
}

TEST(DrawToken, DrawsSoOfAWholeVocabulary) {
  expect_plainly_drawn({"GPT-2's", 50257, 3.5}, 5,
                       {{.temperature = 0},
                        {.temperature = 0.8},
                        {.temperature = 0.8, .top_k = 40},
                        {.temperature = 0.8, .top_p = 0.95},
                        {.temperature = 1.3, .top_p = 0.95}});
}

}  // namespace
}  // namespace tessera::testing
