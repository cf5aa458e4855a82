#include "tessera/train/beam_search.h"

#include <algorithm>
#include <cmath>

#include "tessera/base/error.h"

namespace tessera::train {
namespace {

void check(int64_t searches, const BeamOptions& options) {
  const auto code = ErrorCode::invalid_argument;
  require(searches > 0, code, "{} searches", searches);
  require(options.beams > 0, code, "a search that follows {} texts", options.beams);
  require(options.longest > 0, code, "texts of {} tokens", options.longest);
  require(std::isfinite(options.length_penalty), code, "a length penalty of {}", options.length_penalty);
}

// A text that is followed, and one token more.
struct Candidate {
  int64_t beam = 0;
  int32_t token = 0;
  double log_share = 0;  // of all its tokens
};

class Search {
 public:
  explicit Search(const BeamOptions& options) : options_(options), followed_(1) {}

  bool done() const { return followed_.empty(); }

  // `first`: the row of its first beam. Notes which token each of its rows takes next, and from which row.
  void advance(const NextTokens& next, int64_t first, int64_t place, std::span<int32_t> tokens,
               std::span<int32_t> parents) {
    std::vector<Candidate> best = place + 1 == options_.longest ? ends(next, first) : candidates(next, first);
    // Of equal ones the first was the likelier token of the likelier text.
    std::ranges::stable_sort(best, std::greater<>(), &Candidate::log_share);
    std::vector<Followed> followed;
    for (size_t rank = 0; rank < best.size() && std::ssize(followed) < options_.beams; ++rank) {
      const Candidate& one = best[rank];
      if (one.token == options_.end) {
        if (std::cmp_less(rank, options_.beams)) find(one, place + 1);
        continue;
      }
      const auto row = followed.size();
      tokens[row] = one.token;
      parents[row] = static_cast<int32_t>(first + one.beam);
      Followed& text = followed.emplace_back(followed_[static_cast<size_t>(one.beam)]);
      text.tokens.push_back(one.token);
      text.log_share = one.log_share;
    }
    followed_ = std::move(followed);
    if (std::ssize(found_) >= options_.beams || place + 1 == options_.longest) followed_.clear();
  }

  std::vector<FoundText> found() && {
    std::ranges::stable_sort(found_, std::greater<>(), &FoundText::score);
    return std::move(found_);
  }

 private:
  struct Followed {
    std::vector<int32_t> tokens;
    double log_share = 0;
  };

  double sum_with(size_t beam, double log_share) const {
    require(!std::isnan(log_share), ErrorCode::not_finite, "the probability of a token is not a number");
    return followed_[beam].log_share + log_share;
  }

  std::vector<Candidate> candidates(const NextTokens& next, int64_t first) const {
    const int64_t each = next.tokens.shape()[1];
    std::vector<Candidate> all;
    for (size_t beam = 0; beam < followed_.size(); ++beam) {
      const int64_t row = (first + static_cast<int64_t>(beam)) * each;
      for (int64_t i = row; i < row + each; ++i)
        all.push_back({static_cast<int64_t>(beam), static_cast<int32_t>(next.tokens.at(i)),
                       sum_with(beam, next.log_shares.at(i))});
    }
    return all;
  }

  // What ends here, wherever it stands among the likeliest.
  std::vector<Candidate> ends(const NextTokens& next, int64_t first) const {
    std::vector<Candidate> all;
    for (size_t beam = 0; beam < followed_.size(); ++beam)
      all.push_back({static_cast<int64_t>(beam), options_.end,
                     sum_with(beam, next.end_log_share.at(first + static_cast<int64_t>(beam)))});
    return all;
  }

  void find(const Candidate& one, int64_t length) {
    if (std::ssize(found_) == options_.beams) return;
    found_.push_back(
        {.tokens = followed_[static_cast<size_t>(one.beam)].tokens,
         .score = one.log_share / std::pow(static_cast<double>(length), options_.length_penalty)});
  }

  const BeamOptions& options_;
  std::vector<Followed> followed_;  // in the rows from its first on
  std::vector<FoundText> found_;
};

}  // namespace

std::vector<std::vector<FoundText>> beam_search(int64_t searches, const BeamOptions& options,
                                                const NextStep& next) {
  check(searches, options);
  std::vector<Search> all(static_cast<size_t>(searches), Search(options));
  const auto rows = static_cast<size_t>(searches * options.beams), each = static_cast<size_t>(options.beams);
  std::vector<int32_t> tokens(rows, options.begin), parents(rows, 0);
  for (int64_t place = 0; std::ranges::any_of(all, [](const Search& one) { return !one.done(); }); ++place) {
    const NextTokens said = next(tokens, parents, place);
    for (size_t i = 0; i < all.size(); ++i) {
      if (all[i].done()) continue;
      const size_t first = i * each;
      all[i].advance(said, static_cast<int64_t>(first), place, std::span(tokens).subspan(first, each),
                     std::span(parents).subspan(first, each));
    }
  }
  std::vector<std::vector<FoundText>> found;
  for (Search& one : all) found.push_back(std::move(one).found());
  return found;
}

}  // namespace tessera::train
