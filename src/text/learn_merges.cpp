#include "text/learn_merges.h"

#include <algorithm>
#include <queue>
#include <unordered_map>

namespace tessera::text {
namespace {

struct PairHash {
  size_t operator()(const SymbolPair& pair) const {
    constexpr uint64_t kGoldenRatio = 0x9E3779B97F4A7C15u;
    return static_cast<size_t>((static_cast<uint64_t>(pair.first) << 32 | pair.second) * kGoldenRatio >> 16);
  }
};

struct Candidate {
  SymbolPair pair;
  int64_t count;
  bool operator<(const Candidate& other) const {
    return count != other.count ? count < other.count : pair > other.pair;
  }
};

class Learner {
 public:
  explicit Learner(std::vector<CountedWord> words) : words_(std::move(words)) {
    for (uint32_t word = 0; word < words_.size(); ++word) {
      const std::vector<uint32_t>& symbols = words_[word].symbols;
      for (size_t i = 0; i + 1 < symbols.size(); ++i) change({symbols[i], symbols[i + 1]}, word, 1);
    }
    propose_changed();
  }

  std::vector<SymbolPair> learn(int64_t minimum, const std::function<int64_t(SymbolPair)>& join) {
    std::vector<SymbolPair> merges;
    while (!candidates_.empty()) {
      const Candidate best = candidates_.top();
      candidates_.pop();
      const int64_t count = pairs_.at(best.pair).count;
      // Counts in the queue are those of when it was proposed; since then it may only have become fewer, or
      // been proposed anew.
      if (best.count != count) {
        if (count > 0 && count < best.count) candidates_.push({best.pair, count});
        continue;
      }
      if (count < std::max<int64_t>(minimum, 1)) break;
      const int64_t made = join(best.pair);
      if (made < 0) break;
      merges.push_back(best.pair);
      apply(best.pair, static_cast<uint32_t>(made));
      propose_changed();
    }
    return merges;
  }

 private:
  struct Pair {
    int64_t count = 0;
    std::vector<uint32_t> words;  // in which it was met, some of them several times
  };

  void change(SymbolPair pair, uint32_t word, int64_t sign) {
    Pair& changed = pairs_[pair];
    changed.count += sign * words_[word].count;
    if (sign < 0) return;
    if (changed.words.empty() || changed.words.back() != word) changed.words.push_back(word);
    changed_.push_back(pair);
  }

  void propose_changed() {
    std::sort(changed_.begin(), changed_.end());
    changed_.erase(std::unique(changed_.begin(), changed_.end()), changed_.end());
    for (const SymbolPair& pair : changed_) {
      if (const int64_t count = pairs_.at(pair).count; count > 0) candidates_.push({pair, count});
    }
    changed_.clear();
  }

  void apply(SymbolPair pair, uint32_t made) {
    const std::vector<uint32_t> words = std::exchange(pairs_.at(pair), {}).words;
    for (const uint32_t word : words) join_in(word, pair, made);
    // Of runs of one symbol, such as three a, the middle one was counted twice.
    pairs_.at(pair).count = 0;
  }

  // In place; a word that was joined already is left as it is.
  void join_in(uint32_t word, SymbolPair pair, uint32_t made) {
    std::vector<uint32_t>& symbols = words_[word].symbols;
    size_t kept = 0;
    for (size_t i = 0; i < symbols.size(); ++i) {
      const bool joined = i + 1 < symbols.size() && symbols[i] == pair.first && symbols[i + 1] == pair.second;
      if (!joined) {
        symbols[kept++] = symbols[i];
        continue;
      }
      if (kept > 0) {
        change({symbols[kept - 1], pair.first}, word, -1);
        change({symbols[kept - 1], made}, word, 1);
      }
      if (i + 2 < symbols.size()) {
        change({pair.second, symbols[i + 2]}, word, -1);
        change({made, symbols[i + 2]}, word, 1);
      }
      symbols[kept++] = made;
      ++i;
    }
    symbols.resize(kept);
  }

  std::vector<CountedWord> words_;
  std::unordered_map<SymbolPair, Pair, PairHash> pairs_;
  std::vector<SymbolPair> changed_;  // met more often than when they were proposed
  std::priority_queue<Candidate> candidates_;
};

}  // namespace

std::vector<SymbolPair> learn_merges(std::vector<CountedWord> words, int64_t minimum,
                                     const std::function<int64_t(SymbolPair)>& join) {
  return Learner(std::move(words)).learn(minimum, join);
}

}  // namespace tessera::text
