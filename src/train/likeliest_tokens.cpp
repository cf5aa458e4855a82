#include "train/likeliest_tokens.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>

#include "tessera/base/error.h"

#include "train/logit_loops.h"

namespace tessera::train {
namespace {

constexpr size_t kLanes = 1024;

constexpr auto kIsLikelier = [](const RankedToken& a, const RankedToken& b) {
  return a.logit > b.logit || (a.logit == b.logit && a.token < b.token);
};

}  // namespace

LikeliestTokens::LikeliestTokens(std::span<const float> logits) : logits_(logits), lanes_(kLanes, -INFINITY) {
  bool all_numbers = true;
  for (size_t begin = 0; begin < logits.size(); begin += kLanes)
    all_numbers &= raise_highest(lanes_, row_from(begin));
  require(all_numbers, ErrorCode::not_finite, "a logit of the next token is not a number");
  highest_ = std::ranges::max(lanes_);
  require(highest_ > -INFINITY, ErrorCode::not_finite, "no token can come next");
}

std::span<const float> LikeliestTokens::row_from(size_t begin) const {
  return logits_.subspan(begin, std::min(kLanes, logits_.size() - begin));
}

std::vector<RankedToken> LikeliestTokens::collect(float least) const {
  std::vector<RankedToken> result;
  std::array<uint32_t, kLanes> numbers;
  for (size_t begin = 0; begin < logits_.size(); begin += kLanes) {
    const std::span<const float> row = row_from(begin);
    const size_t count = find_at_least(least, row, numbers);
    for (const uint32_t number : std::span(numbers).first(count))
      result.push_back({row[number], static_cast<int64_t>(begin + number)});
  }
  return result;
}

int64_t LikeliestTokens::likeliest() const {
  return collect(highest_).front().token;
}

std::vector<RankedToken> LikeliestTokens::first(size_t count) const {
  float least = -INFINITY;
  // What so many lanes have at least, each in a token of its own, hardly more tokens have.
  if (count <= kLanes / 2) {
    std::vector<float> lanes = lanes_;
    const auto last = lanes.begin() + static_cast<std::ptrdiff_t>(count) - 1;
    std::nth_element(lanes.begin(), last, lanes.end(), std::greater<>());
    least = *last;
  }
  std::vector<RankedToken> result = collect(least);
  if (count < result.size()) {
    const auto end = result.begin() + static_cast<std::ptrdiff_t>(count);
    std::nth_element(result.begin(), end, result.end(), kIsLikelier);
    result.erase(end, result.end());
  }
  std::ranges::sort(result, kIsLikelier);
  return result;
}

std::vector<RankedToken> LikeliestTokens::at_least(double logit) const {
  const auto nearest = static_cast<float>(std::max<double>(logit, std::numeric_limits<float>::lowest()));
  std::vector<RankedToken> result = collect(std::nextafter(nearest, -INFINITY));
  std::ranges::sort(result, kIsLikelier);
  return result;
}

}  // namespace tessera::train
