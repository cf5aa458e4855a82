// Texts as rows of tokens of one length.
#pragma once

#include <cstdint>
#include <vector>

#include "tessera/compile/feeds.h"
#include "tessera/text/tokenizer.h"

namespace tessera::tasks {

class TextRows {
 public:
  // Filled up with the tokenizer's padding, or zeros.
  TextRows(const text::Tokenizer& tokenizer, int64_t tokens);

  // `row` has no more tokens than a row; its types are the segments.
  void add(const text::Encoding& row);
  int64_t size() const { return std::ssize(lengths_); }
  // "tokens" and "segments", int32 [rows, tokens], and "lengths", int32 [rows].
  Feeds feeds() const;

 private:
  int64_t tokens_;
  int32_t padding_;
  std::vector<int32_t> ids_;
  std::vector<int32_t> segments_;
  std::vector<int32_t> lengths_;
};

// The token that fills rows.
int32_t padding_of(const text::Tokenizer& tokenizer);

}  // namespace tessera::tasks
