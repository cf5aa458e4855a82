// Text to numbers and back: tokenizers that are read from their users' own files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::text {

// Bytes `begin` up to but without `end`.
struct Span {
  uint32_t begin = 0;
  uint32_t end = 0;
  bool operator==(const Span&) const = default;
};

struct Encoding {
  std::vector<int32_t> ids;
  std::vector<int32_t>
      types;  // as many: 0 for the first text of a pair, 1 for the second, unless the file differs
  // As many where they were asked for, otherwise none: the bytes of the text that each token stands for, of
  // the text that it came from; {0, 0} for tokens that the tokenizer added.
  std::vector<Span> offsets;
};

// What is left out of texts that are too long.
enum class Truncation : uint8_t {
  longest_first,  // of the longer text of a pair, until both are as long
  only_first,
  only_second
};

struct EncodeOptions {
  bool special_tokens = true;  // those that the file puts around a text, such as [CLS] and [SEP]
  bool offsets = false;
  int64_t maximum_length = 0;  // tokens, added ones included; 0: any number
  Truncation truncation = Truncation::longest_first;
};

struct TokenizerParts;

// Text is UTF-8; each maximal part of it that is none counts as U+FFFD (Unicode 15, section 3.9, table 3-8).
// What it does is what the file says, as the library `tokenizers` of Hugging Face does it; BERT's classes of
// characters are those of Unicode 8, as there. Copies share all. Any number of threads may use one.
class Tokenizer {
 public:
  explicit Tokenizer(TokenizerParts parts);

  // Throws Error(invalid_argument) for a text of 2 GiB or more, for a maximum length that leaves no place
  // beside the added tokens, and for Truncation::only_first or only_second where that text is too short for
  // it.
  Encoding encode(std::string_view text, const EncodeOptions& options = {}) const;
  Encoding encode_pair(std::string_view first, std::string_view second,
                       const EncodeOptions& options = {}) const;
  // The tokens of a text alone, without special ones around it and without limit, after those that are there.
  void append_tokens(std::string_view text, std::vector<int32_t>& ids) const;

  // Throws Error(invalid_argument) for an id that is none of the vocabulary.
  std::string decode(std::span<const int32_t> ids, bool skip_special = true) const;

  int64_t vocabulary_size() const;  // the largest id and one
  std::optional<int32_t> id_of(std::string_view token) const;
  // As the file writes it; "" where no token has that id. Throws Error(invalid_argument) as decode() does.
  std::string_view token(int32_t id) const;
  bool is_special(int32_t id) const;
  // "wordpiece", "byte_pairs" or "sentence_piece".
  std::string_view kind() const;

 private:
  struct State;
  std::shared_ptr<const State> state_;
};

// BERT's (Devlin et al. 2019): what its vocab.txt does not say.
struct WordPieceOptions {
  bool lower_case = true;
  std::optional<bool> strip_accents = {};  // none: as lower_case
  bool split_ideographs = true;            // each Chinese character is a word
  std::string unknown = "[UNK]";
  std::string continuing = "##";  // what tokens begin with that do not begin a word
  int64_t longest_word = 100;     // characters; longer ones are unknown
};

struct BytePairOptions {
  bool prefix_space = false;  // whether a text is read as if it began with a space
};

struct SentencePieceOptions {
  bool begin = false;  // whether texts get the model's token for the beginning of a sentence
  bool end = false;
};

// What is at `path`: a tokenizer.json; a vocab.txt; a SentencePiece .model; a merges.txt or vocab.json beside
// the other; or a folder that holds them, of which the first of these is taken, with the settings of a
// tokenizer_config.json beside vocab.txt or vocab.json. Throws Error(io) when there is none,
// Error(invalid_file) for one that is broken, Error(unsupported) naming the part of a tokenizer.json that is
// not known here, or where a .model is given to a library that was built without SentencePiece.
Tokenizer read_tokenizer(const std::filesystem::path& path);

// The files that read_tokenizer() reads there, by which a tokenizer can be copied. Throws Error(io) as it
// does.
std::vector<std::filesystem::path> tokenizer_files(const std::filesystem::path& path);

// From memory; `name` is what messages call the file. Throw as above.
//
// One token a line; its number is its id. [PAD], [CLS], [SEP], [MASK] and the unknown token are special where
// they are there; texts stand between [CLS] and [SEP] where both are.
Tokenizer parse_word_pieces(std::string_view vocabulary, std::string_view name,
                            const WordPieceOptions& options = {});
// GPT-2's (Radford et al. 2019): ids by token, in JSON, and the merges, best first. <|endoftext|> is special.
Tokenizer parse_byte_pairs(std::string_view vocabulary, std::string_view merges, std::string_view name,
                           const BytePairOptions& options = {});
// Hugging Face's tokenizer.json of either kind. Its truncation and padding are not read: EncodeOptions says
// them.
Tokenizer parse_tokenizer_json(std::string_view json, std::string_view name);
Tokenizer parse_sentence_piece(std::string_view model, std::string_view name,
                               const SentencePieceOptions& options = {});

}  // namespace tessera::text
