// Tokens of many documents in files that are mapped into memory. docs/text.md describes the format.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tessera/base/file.h"

namespace tessera::data {

// One file: the tokens of its documents, one after another. A document has one field (a text) or two (a text
// and its translation).
class TokenShard {
 public:
  // Throws Error(io), and Error(invalid_file) where the header and the size of the file are at odds.
  explicit TokenShard(const std::filesystem::path& path);

  int64_t documents() const { return documents_; }
  int64_t fields() const { return fields_; }
  int64_t tokens() const { return tokens_; }          // of all documents
  int64_t vocabulary() const { return vocabulary_; }  // tokens are below it
  int64_t bytes_per_token() const { return bytes_per_token_; }
  uint64_t tokenizer() const { return tokenizer_; }  // a number of the files that made the tokens

  // Where a field of a document begins and ends among all tokens. Throws Error(invalid_argument) where there
  // is no such document, Error(invalid_file) where the file says what cannot be.
  struct Place {
    int64_t begin = 0;
    int64_t end = 0;
  };
  Place place(int64_t document, int64_t field = 0) const;
  // Tokens from `begin` on. Throws Error(invalid_argument) where there are not so many, Error(invalid_file)
  // for one that is none of the vocabulary.
  void read(int64_t begin, std::span<int32_t> tokens) const;
  // Reads all of it. Throws Error(invalid_file) unless its checksum holds, its places ascend, and all its
  // tokens are of the vocabulary.
  void verify() const;

 private:
  int64_t offset(int64_t index) const;

  MappedFile file_;
  int64_t documents_ = 0;
  int64_t fields_ = 1;
  int64_t tokens_ = 0;
  int64_t vocabulary_ = 0;
  int64_t bytes_per_token_ = 0;
  uint64_t tokenizer_ = 0;
  uint32_t checksum_ = 0;
};

// What a shard is made of.
struct TokenDocuments {
  std::vector<int32_t> tokens;
  std::vector<int64_t> ends;  // of each field of each document, in `tokens`
};

struct TokenShardOptions {
  int64_t fields = 1;
  int64_t vocabulary = 0;
  uint64_t tokenizer = 0;
};

// At once or not at all, with two bytes for a token where the vocabulary allows it. Throws
// Error(invalid_argument) where ends do not ascend, do not end with the tokens or are no whole documents, or
// a token is none of the vocabulary; Error(io).
void write_token_shard(const std::filesystem::path& path, const TokenDocuments& documents,
                       const TokenShardOptions& options);

// Shards and the file that lists them: a folder with `tokens.json`.
struct TokenSetHeader {
  int64_t vocabulary = 0;
  uint64_t tokenizer = 0;
  int64_t fields = 1;
  // Ids of tokens that rows need; none where the tokenizer has none.
  std::optional<int32_t> begin;      // [CLS]
  std::optional<int32_t> separator;  // [SEP], <|endoftext|>, </s>
  std::optional<int32_t> padding;    // [PAD]
  std::optional<int32_t> mask;       // [MASK]
};

class TokenSet {
 public:
  // The shards that tokens.json of a folder lists. Throws Error(io), and Error(invalid_file) where a shard is
  // broken or is not what the list says.
  explicit TokenSet(const std::filesystem::path& folder);

  const TokenSetHeader& header() const { return header_; }
  const std::vector<TokenShard>& shards() const { return shards_; }
  int64_t documents() const;
  int64_t tokens() const;
  void verify() const;

 private:
  TokenSetHeader header_;
  std::vector<TokenShard> shards_;
};

struct TokenSetEntry {
  std::string file;  // its name in the folder
  int64_t documents = 0;
  int64_t tokens = 0;
};
// At once or not at all.
void write_token_set(const std::filesystem::path& folder, const TokenSetHeader& header,
                     const std::vector<TokenSetEntry>& shards);

}  // namespace tessera::data
