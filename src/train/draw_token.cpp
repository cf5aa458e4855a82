#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <utility>

#include "tessera/base/error.h"
#include "tessera/base/random.h"
#include "tessera/train/generation.h"

#include "train/likeliest_tokens.h"
#include "train/logit_loops.h"

namespace tessera::train {
namespace {

constexpr uint64_t kGenerationStream = 7;

void check(std::span<const float> logits, const Sampling& sampling) {
  require(!logits.empty(), ErrorCode::invalid_argument, "there are no tokens to draw from");
  require(sampling.temperature >= 0 && std::isfinite(sampling.temperature), ErrorCode::invalid_argument,
          "a temperature of {}: it is 0 or more", sampling.temperature);
  require(sampling.top_k >= 0, ErrorCode::invalid_argument, "the {} likeliest tokens", sampling.top_k);
  require(sampling.top_p > 0 && sampling.top_p <= 1, ErrorCode::invalid_argument,
          "tokens of a probability of {}: it is above 0 and at most 1", sampling.top_p);
}

// The first whose weight, with those before it, is more than `left`, of which what they leave remains; where
// roundings leave none, the last that has a weight.
size_t drawn_from(std::span<const double> weights, double& left) {
  size_t last = 0;
  for (size_t i = 0; i < weights.size(); ++i) {
    if (left < weights[i]) return i;
    left -= weights[i];
    if (weights[i] > 0) last = i;
  }
  return last;
}

// The weights of all tokens, of which a block is made anew where one is drawn from it.
class AllTokens {
 public:
  AllTokens(std::span<const float> logits, float highest, double temperature)
      : logits_(logits), highest_(highest), temperature_(temperature) {
    Block weights;
    for (size_t begin = 0; begin < logits.size(); begin += kBlock)
      sums_.push_back(write_block(begin / kBlock, weights));
    sum_ = std::accumulate(sums_.begin(), sums_.end(), 0.0);
  }

  size_t size() const { return logits_.size(); }
  double sum() const { return sum_; }

  // `share` of the sum, from 0 to below 1, says which token.
  int64_t draw(double share) const {
    double left = share * sum_;
    const size_t number = drawn_from(sums_, left);
    Block weights;
    write_block(number, weights);
    return static_cast<int64_t>(number * kBlock + drawn_from(weights, left));
  }

 private:
  static constexpr size_t kBlock = 256;
  using Block = std::array<double, kBlock>;

  // Returns the sum; where there are no more tokens weights are 0.
  double write_block(size_t number, Block& weights) const {
    const size_t begin = number * kBlock, count = std::min(kBlock, logits_.size() - begin);
    std::fill(weights.begin() + static_cast<std::ptrdiff_t>(count), weights.end(), 0.0);
    return write_weights(logits_.subspan(begin, count), highest_, temperature_, weights);
  }

  std::span<const float> logits_;
  float highest_;
  double temperature_;
  std::vector<double> sums_;
  double sum_ = 0;
};

// The likeliest tokens, or those of them that are kept.
class FewTokens {
 public:
  // In order, from the likeliest on.
  FewTokens(std::vector<RankedToken> tokens, double temperature)
      : tokens_(std::move(tokens)), weights_(tokens_.size()) {
    std::vector<float> logits;
    for (const RankedToken& one : tokens_) logits.push_back(one.logit);
    sum_ = write_weights(logits, logits.front(), temperature, weights_);
  }

  double sum() const { return sum_; }

  // The likeliest whose weights together are so much, at least one. False where all have less.
  bool keep(double enough) {
    size_t count = 0;
    sum_ = 0;
    while (count < weights_.size() && (count == 0 || sum_ < enough)) sum_ += weights_[count++];
    weights_.resize(count);
    return sum_ >= enough;
  }

  // As AllTokens::draw().
  int64_t draw(double share) const {
    double left = share * sum_;
    return tokens_[drawn_from(weights_, left)].token;
  }

 private:
  std::vector<RankedToken> tokens_;
  std::vector<double> weights_;
  double sum_;
};

// The likeliest that have a share of the weights of all together.
FewTokens likeliest_of(const LikeliestTokens& likeliest, double temperature, const AllTokens& all,
                       double share) {
  const double enough = share * all.sum();
  constexpr std::array<size_t, 2> kCounts{64, 512};  // which mostly suffice
  for (const size_t count : kCounts) {
    FewTokens few(likeliest.first(count), temperature);
    if (few.keep(enough)) return few;
  }
  // Tokens of less weight than that have less than the rest together.
  const double least = (1 - share) * all.sum() / static_cast<double>(all.size());
  FewTokens few(likeliest.at_least(likeliest.highest() + temperature * std::log(least)), temperature);
  few.keep(enough);
  return few;
}

}  // namespace

int64_t draw_token(std::span<const float> logits, const Sampling& sampling, int64_t step) {
  check(logits, sampling);
  const auto& [temperature, top_k, top_p, seed] = sampling;
  const LikeliestTokens likeliest(logits);
  if (temperature == 0) return likeliest.likeliest();
  const double share = Random(seed, kGenerationStream).uniform(static_cast<uint64_t>(step));
  if (0 < top_k && top_k < std::ssize(logits)) {
    FewTokens few(likeliest.first(static_cast<size_t>(top_k)), temperature);
    if (top_p < 1) few.keep(top_p * few.sum());
    return few.draw(share);
  }
  const AllTokens all(logits, likeliest.highest(), temperature);
  if (top_p == 1) return all.draw(share);
  return likeliest_of(likeliest, temperature, all, top_p).draw(share);
}

}  // namespace tessera::train
