// Vocabularies learned from text.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tessera/text/tokenizer.h"

namespace tessera::text {

enum class VocabularyKind : uint8_t {
  wordpiece,  // BERT's words and marks; a token that does not begin a word begins with ##
  byte_pairs  // GPT-2's words of bytes
};

struct VocabularyOptions {
  VocabularyKind kind = VocabularyKind::wordpiece;
  int64_t size = 8000;            // tokens at most, special ones included
  int64_t minimum_frequency = 2;  // pairs that are met less often are not joined
  bool lower_case = true;         // of wordpiece alone; accents go with the case
  int64_t alphabet = 1000;        // characters at most that are tokens, of wordpiece alone: the most frequent
  std::vector<std::string> special_tokens = {};  // empty: the kind's own, BERT's five or <|endoftext|>
};

struct LearnedVocabulary {
  VocabularyOptions options;
  std::vector<std::string> tokens;  // by id
  std::vector<std::pair<std::string, std::string>>
      merges;  // best first; of byte_pairs they are part of the tokenizer
};

// Counts the words of texts, then joins the pair of neighbors that is met most often into a token, again and
// again (Gage 1994, Sennrich et al. 2016), as the library `tokenizers` of Hugging Face does it; of pairs that
// are met equally often the one of lower ids goes first. What is learned depends on the texts alone, not on
// their order or on threads.
class VocabularyLearner {
 public:
  // Throws Error(invalid_argument) where the size does not hold the special tokens (and, of byte_pairs, the
  // 256 bytes) or a number is out of range.
  explicit VocabularyLearner(VocabularyOptions options);
  ~VocabularyLearner();

  // Words do not go over the ends of a text. Any number of threads may add.
  void add(std::string_view text);
  // Throws Error(invalid_argument) where no word was added.
  LearnedVocabulary learn() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// The files of a tokenizer: tokenizer.json, and vocab.txt with tokenizer_config.json, or vocab.json and
// merges.txt. Creates the folder; each file is replaced at once or not at all. Throws Error(io).
void write_tokenizer(const LearnedVocabulary& vocabulary, const std::filesystem::path& folder);

// The text of tokenizer.json alone.
std::string tokenizer_json(const LearnedVocabulary& vocabulary);

}  // namespace tessera::text
