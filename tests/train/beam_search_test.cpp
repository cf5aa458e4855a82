// Beam search beside all texts there are.
#include "tessera/train/beam_search.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include <gtest/gtest.h>

#include "tessera/base/random.h"

#include "support/expect_error.h"

namespace tessera::testing {
namespace {

using train::BeamOptions;
using train::FoundText;
using Tokens = std::vector<int32_t>;

constexpr int64_t kVocabulary = 4;
constexpr int64_t kLongest = 5;
constexpr int32_t kEnd = 3;

// A language by chance: what comes next depends on all that came before, and on the language's number.
std::vector<double> log_shares(uint64_t language, const Tokens& before) {
  uint64_t code = 1;
  for (const int32_t token : before) code = code * kVocabulary + static_cast<uint64_t>(token);
  std::vector<double> shares;
  for (uint64_t token = 0; token < kVocabulary; ++token)
    shares.push_back(std::exp(4 * Random(language, code).uniform(token)));
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  for (double& share : shares) share = std::log(share / sum);
  return shares;
}

// What a network would say of rows, by what they hold; counts how often it was asked.
class Language {
 public:
  Language(std::vector<uint64_t> languages, int64_t beams)
      : languages_(std::move(languages)),
        beams_(beams),
        rows_(languages_.size() * static_cast<size_t>(beams)) {}

  train::NextTokens next(std::span<const int32_t> tokens, std::span<const int32_t> parents, int64_t place) {
    EXPECT_EQ(place, asked_++);
    std::vector<Tokens> rows(rows_.size());
    const auto count = static_cast<int64_t>(rows_.size()), each = std::min(2 * beams_, kVocabulary);
    train::NextTokens said{.tokens = Tensor(DataType::int32, {count, each}),
                           .log_shares = Tensor(DataType::fp32, {count, each}),
                           .end_log_share = Tensor(DataType::fp32, {count})};
    for (int64_t row = 0; row < count; ++row) {
      Tokens& own = rows[static_cast<size_t>(row)];
      if (place > 0) {
        own = rows_[static_cast<size_t>(parents[static_cast<size_t>(row)])];
        own.push_back(tokens[static_cast<size_t>(row)]);
      } else {
        EXPECT_EQ(tokens[static_cast<size_t>(row)], 1) << "the begin";
      }
      const std::vector<double> shares = log_shares(languages_[static_cast<size_t>(row / beams_)], own);
      std::vector<int64_t> order(kVocabulary);
      std::iota(order.begin(), order.end(), 0);
      std::ranges::sort(order, std::greater<>(),
                        [&](int64_t token) { return shares[static_cast<size_t>(token)]; });
      for (int64_t i = 0; i < each; ++i) {
        said.tokens.set(row * each + i, static_cast<double>(order[static_cast<size_t>(i)]));
        said.log_shares.set(row * each + i, shares[static_cast<size_t>(order[static_cast<size_t>(i)])]);
      }
      said.end_log_share.set(row, shares[kEnd]);
    }
    rows_ = std::move(rows);
    return said;
  }
  int64_t asked() const { return asked_; }

 private:
  std::vector<uint64_t> languages_;
  int64_t beams_;
  std::vector<Tokens> rows_;
  int64_t asked_ = 0;
};

BeamOptions options_of(int64_t beams, double penalty = 1) {
  return {.beams = beams, .length_penalty = penalty, .longest = kLongest, .begin = 1, .end = kEnd};
}

std::vector<std::vector<FoundText>> search(Language& language, int64_t searches, const BeamOptions& options) {
  return train::beam_search(searches, options, [&](auto tokens, auto parents, int64_t place) {
    return language.next(tokens, parents, place);
  });
}

std::vector<FoundText> search(uint64_t number, const BeamOptions& options) {
  Language language({number}, options.beams);
  return search(language, 1, options).front();
}

// Of each text that ends within the longest length.
void visit_all(uint64_t language, double penalty, Tokens& before, double log_share,
               const std::function<void(const Tokens& tokens, double score)>& visit) {
  const std::vector<double> shares = log_shares(language, before);
  const auto length = static_cast<double>(before.size() + 1);
  visit(before, (log_share + shares[kEnd]) / std::pow(length, penalty));
  if (std::ssize(before) + 1 == kLongest) return;
  for (int32_t token = 0; token < kVocabulary; ++token) {
    if (token == kEnd) continue;
    before.push_back(token);
    visit_all(language, penalty, before, log_share + shares[static_cast<size_t>(token)], visit);
    before.pop_back();
  }
}

// Where all texts are followed, the best of all is found.
TEST(BeamSearch, OfAllTextsFindsTheBest) {
  constexpr int64_t kAll = 256;
  for (uint64_t language = 1; language <= 20; ++language) {
    for (const double penalty : {0.0, 1.0, 2.5}) {
      Tokens none, best;
      double highest = -INFINITY;
      int64_t count = 0;
      visit_all(language, penalty, none, 0, [&](const Tokens& tokens, double score) {
        ++count;
        if (score <= highest) return;
        highest = score;
        best = tokens;
      });
      const std::vector<FoundText> found = search(language, options_of(kAll, penalty));
      EXPECT_EQ(std::ssize(found), count) << "1 + 3 + 9 + 27 + 81 texts";
      EXPECT_EQ(found.front().tokens, best) << language << " " << penalty;
      // fp32 of five numbers of a few.
      EXPECT_NEAR(found.front().score, highest, 1e-5);
      EXPECT_TRUE(std::ranges::is_sorted(found, std::greater<>(), &FoundText::score));
    }
  }
}

TEST(BeamSearch, OfOneTakesTheLikeliestTokenAlways) {
  int64_t longest = 0;
  for (uint64_t language = 1; language <= 50; ++language) {
    Tokens greedy;
    while (std::ssize(greedy) + 1 < kLongest) {
      const std::vector<double> shares = log_shares(language, greedy);
      const auto token = static_cast<int32_t>(std::ranges::max_element(shares) - shares.begin());
      if (token == kEnd) break;
      greedy.push_back(token);
    }
    const std::vector<FoundText> found = search(language, options_of(1));
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found.front().tokens, greedy);
    longest += std::ssize(greedy) + 1 == kLongest ? 1 : 0;
  }
  EXPECT_GT(longest, 5) << "some end by their length";
  EXPECT_LT(longest, 45);
}

// One level after the other, by the definition alone: of the continuations of all followed texts the 2 *
// beams best, in order.
std::vector<FoundText> plain_search(uint64_t language, const BeamOptions& options) {
  std::vector<std::pair<double, Tokens>> followed{{0, {}}};
  std::vector<FoundText> found;
  for (int64_t length = 1; length <= kLongest && std::ssize(found) < options.beams; ++length) {
    std::vector<std::pair<double, Tokens>> all;
    for (const auto& [sum, tokens] : followed) {
      const std::vector<double> shares = log_shares(language, tokens);
      for (int32_t token = 0; token < kVocabulary; ++token) {
        if (length == kLongest && token != kEnd) continue;
        all.emplace_back(sum + shares[static_cast<size_t>(token)], tokens);
        all.back().second.push_back(token);
      }
    }
    std::ranges::sort(all, std::greater<>());
    followed.clear();
    for (size_t rank = 0; rank < all.size() && std::ssize(followed) < options.beams; ++rank) {
      auto& [sum, tokens] = all[rank];
      if (tokens.back() != kEnd) {
        followed.push_back(all[rank]);
      } else if (std::cmp_less(rank, options.beams) && std::ssize(found) < options.beams) {
        tokens.pop_back();
        found.push_back({tokens, sum / std::pow(static_cast<double>(length), options.length_penalty)});
      }
    }
  }
  std::ranges::sort(found, std::greater<>(), &FoundText::score);
  return found;
}

// Several searches share their steps, and do not see each other.
TEST(BeamSearch, FollowsSeveralTextsOfSeveralSearches) {
  const std::vector<uint64_t> languages{31, 32, 33, 34, 35, 36, 37, 38};
  for (const int64_t beams : {2, 3, 5}) {
    const BeamOptions options = options_of(beams, 0.6);
    Language language(languages, beams);
    const auto found = search(language, std::ssize(languages), options);
    EXPECT_LE(language.asked(), kLongest);
    for (size_t i = 0; i < languages.size(); ++i) {
      const std::vector<FoundText> expected = plain_search(languages[i], options);
      ASSERT_EQ(found[i].size(), expected.size()) << languages[i];
      for (size_t place = 0; place < expected.size(); ++place) {
        EXPECT_EQ(found[i][place].tokens, expected[place].tokens) << languages[i];
        EXPECT_NEAR(found[i][place].score, expected[place].score, 1e-5);
      }
    }
  }
}

TEST(BeamSearch, RefusesWhatIsOutOfRange) {
  const auto code = ErrorCode::invalid_argument;
  EXPECT_ERROR(search(1, options_of(0)), code, "follows 0 texts");
  EXPECT_ERROR(search(1, {.longest = 0}), code, "texts of 0 tokens");
  EXPECT_ERROR(search(1, options_of(2, NAN)), code, "length penalty of nan");
  const auto broken = [](auto, auto, int64_t) -> train::NextTokens {
    return {.tokens = Tensor::from<int32_t>({1, 2}, {0, 1}),
            .log_shares = Tensor::from<float>({1, 2}, {NAN, -1}),
            .end_log_share = Tensor::from<float>({1}, {-1})};
  };
  EXPECT_ERROR(train::beam_search(1, options_of(1), broken), ErrorCode::not_finite, "not a number");
  EXPECT_ERROR(train::beam_search(0, options_of(1), broken), code, "0 searches");
}

}  // namespace
}  // namespace tessera::testing
