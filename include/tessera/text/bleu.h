// How near translations are to those of people: BLEU (Papineni et al. 2002), as sacreBLEU counts it (Post
// 2018, arXiv:1804.08771), which calls this nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::text {

// The words that are counted: mteval-v13a's, without its normalization of languages.
std::vector<std::string> bleu_words(std::string_view line);

// Runs of one to four words, of a whole corpus.
class BleuCounts {
 public:
  static constexpr size_t kOrders = 4;

  void add(std::string_view said, std::string_view right);
  void add(const BleuCounts& others);
  double score() const;  // 0 to 100

  // All numbers in an order of their own, and back. Throws Error(invalid_argument) where they are not so
  // many.
  std::vector<int64_t> numbers() const;
  static BleuCounts of_numbers(const std::vector<int64_t>& numbers);

 private:
  std::array<int64_t, kOrders> right_{};  // runs of what was said that the other text has, too
  std::array<int64_t, kOrders> all_{};    // runs of what was said
  int64_t said_words_ = 0;
  int64_t right_words_ = 0;
};

}  // namespace tessera::text
