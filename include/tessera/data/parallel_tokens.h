// Texts beside their translations, out of token shards.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tessera/data/examples.h"
#include "tessera/data/token_rows.h"
#include "tessera/data/token_shards.h"

namespace tessera::data {

struct ParallelOptions {
  // Tokens of a row, rising. A pair is in a row of the first of them that has room for its longer text and a
  // token after it; one that none has room for is left out.
  std::vector<int64_t> lengths = {16, 32, 64};
  TokenRowPart part = TokenRowPart::all;
  double test_share = 0;  // as in TokenRowOptions
};

// Fields, int32:
//   "source" [batch, tokens], the text and the separator, and padding, or zeros
//   "source_lengths" [batch], what is no padding of it
//   "target" [batch, tokens], the begin of the set, or its separator where it has none; the translation;
//   padding "labels" [batch, tokens], what comes next at each place: the translation, the separator; padding
//   "target_lengths" [batch], what is no padding of both
class ParallelTokens : public Examples {
 public:
  // Throws Error(invalid_argument) where an option is out of range, or the set has not two fields or no
  // separator.
  ParallelTokens(std::shared_ptr<const TokenSet> set, ParallelOptions options);

  int64_t size() const override { return std::ssize(pairs_); }
  std::vector<Field> fields() const override;
  std::vector<SymbolBindings> buckets() const override;
  int64_t bucket_of(int64_t index) const override;
  void read(int64_t index, const RandomView& view, const ExampleRow& row) const override;
  std::vector<std::string> remarks() const override;

  // Of a pair, without what stands around them: of field 0 the text, of 1 its translation.
  std::vector<int32_t> tokens(int64_t index, int64_t field) const;
  int32_t begin() const;
  int32_t separator() const;

 private:
  struct Pair {
    int64_t document;
    int32_t bucket;
  };

  std::shared_ptr<const TokenSet> set_;
  ParallelOptions options_;
  std::vector<Pair> pairs_;
  int64_t left_out_ = 0;
};

}  // namespace tessera::data
