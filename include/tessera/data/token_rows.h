// Rows of tokens out of shards.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tessera/data/source.h"
#include "tessera/data/token_shards.h"

namespace tessera::data {

enum class TokenRowKind : uint8_t {
  // All documents one after another, each followed by the set's separator where there is one, cut into rows
  // of the length; what is left at the end is left out.
  joined,
  // A document a row, between the set's begin and separator where there are such, cut where it is too long
  // and filled up with the set's padding, or zeros.
  documents,
  // Two texts a row: begin, text, separator, text, separator, and padding, or zeros. In half of the rows the
  // second text follows the first in its document, in the others it is from somewhere else; drawn anew in
  // every epoch.
  pairs
};

// Which rows: all, or those of one side of `test_share` of them, evenly spread.
enum class TokenRowPart : uint8_t { all, training, test };

struct TokenRowOptions {
  TokenRowKind kind = TokenRowKind::joined;
  int64_t length = 512;  // tokens of a row
  int64_t packed = 1;    // pairs that share a row, at most, where they fit: less padding
  // Each batch has pairs of all lengths, so that all hold nearly as many tokens: TokenRows::most_tokens().
  bool even_batches = false;
  TokenRowPart part = TokenRowPart::all;
  double test_share = 0;
  int64_t batch_size = 32;
  bool shuffle = true;    // anew in every epoch; otherwise in their order
  bool drop_last = true;  // leave out the last, incomplete batch; otherwise zeros fill it
  uint64_t seed = 0;      // of the order, and of pairs
  int64_t workers = 1;    // threads that prepare batches; 0: Stream::next() prepares them itself
  int64_t prefetch = 4;   // batches at most that are ready or in preparation
};

// Fields, int32:
//   joined:    "tokens" [batch, length]
//   documents: "tokens" [batch, length] and "lengths" [batch], what is no padding; of sets with two fields
//              "source", "source_lengths", "target" and "target_lengths".
//   pairs:     "tokens", "segments" [batch, length], 1 for the second text and its separator; "lengths"
//              [batch]; "next_sentence" [batch], 0 where the second text follows the first, otherwise 1.
//              Of rows that share several, one after another, the last two are [batch, packed], and 0 where
//              there is none. Which pairs share a row depends on their lengths alone.
// The order of an epoch is a permutation of all rows by (seed, epoch); with several ranks a batch of each is
// a part of one that is as many times larger, so no two see a row twice. With even batches each of a batch's
// pairs is drawn from those of about the same length. What does not fill a batch is other rows in each epoch.
class TokenRows : public Source {
 public:
  // Throws Error(invalid_argument) when an option is out of range, the set has two fields and rows are joined
  // or pairs, there is not one batch, pairs lack tokens around them or a second document, what shares rows
  // is no pairs, or even batches are not of pairs in rows of their own, or keep an incomplete one.
  TokenRows(std::shared_ptr<const TokenSet> set, const TokenRowOptions& options);

  int64_t size() const;  // rows
  // That a batch of a rank holds without padding, at most, whatever the number of ranks. Without even batches
  // those of full rows.
  int64_t most_tokens() const;
  // One row of each field, by its place among the rows of this part; pairs are those of the first epoch.
  Feeds row(int64_t index) const;

  std::vector<Field> fields() const override;
  std::vector<SymbolBindings> sizes() const override;
  std::optional<int64_t> batches(int64_t epoch, int64_t ranks = 1) const override;
  std::shared_ptr<const Source> in_batches_of(int64_t samples) const override;
  // The stream may outlive its source.
  std::unique_ptr<Stream> open(const Cursor& from, const Partition& partition = {}) const override;
  std::unique_ptr<Stream> open_into(std::shared_ptr<const BatchMemory> memory, const Cursor& from,
                                    const Partition& partition = {}) const override;

 private:
  struct State;
  std::shared_ptr<const State> state_;
};

}  // namespace tessera::data
