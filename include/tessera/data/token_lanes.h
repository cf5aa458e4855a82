// A long text read by several readers at once, each of whom goes on where it stopped: what a network reads
// that remembers the text before.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "tessera/data/source.h"
#include "tessera/data/token_rows.h"
#include "tessera/data/token_text.h"

namespace tessera::data {

struct TokenLaneOptions {
  int64_t length = 512;                   // tokens of a segment
  TokenRowPart part = TokenRowPart::all;  // tested is the end of the text, trained on what stands before
  double test_share = 0;                  // of the tokens
  int64_t batch_size = 32;                // lanes
  bool drop_last = true;  // leave out what does not fill a segment of every lane; otherwise it is filled up
  int64_t workers = 1;    // as of TokenRowOptions
  int64_t prefetch = 4;
};

// The text is cut into as many stretches as there are lanes; batch k holds segment k of each.
//   "tokens" int32 [batch, length]; zeros fill up what is beyond the end of a stretch
//   "labels" int32 [batch, length]: the token after each; -100 beyond the end
//   "begins" int32 [batch]: 1 in the first batch of an epoch, whose rows have nothing before them, else 0
// With several ranks there are as many more lanes, of which each rank has those after the ranks' before it:
// the stretches of N ranks with batches of B are those of one with N * B.
class TokenLanes : public Source {
 public:
  // Throws Error(invalid_argument) when an option is out of range or there is not one batch.
  TokenLanes(std::shared_ptr<const TokenText> text, const TokenLaneOptions& options);

  int64_t size() const { return end_ - begin_; }  // tokens of this part
  // Rising cutoffs part the tokens: of each part, which ends where the next one begins, how many labels a
  // batch of any of so many ranks has at most. Reads this part of the text.
  std::vector<int64_t> most_labels(std::span<const int64_t> cutoffs, int64_t ranks = 1) const;

  std::vector<Field> fields() const override;
  std::vector<SymbolBindings> sizes() const override;
  std::optional<int64_t> batches(int64_t epoch, int64_t ranks = 1) const override;
  // The stream may outlive its source.
  std::unique_ptr<Stream> open(const Cursor& from, const Partition& partition = {}) const override;
  std::unique_ptr<Stream> open_into(std::shared_ptr<const BatchMemory> memory, const Cursor& from,
                                    const Partition& partition = {}) const override;

 private:
  struct Lanes;
  Lanes lanes_of(const Partition& partition) const;

  std::shared_ptr<const TokenText> text_;
  TokenLaneOptions options_;
  int64_t begin_ = 0;  // of the part in the text
  int64_t end_ = 0;
};

}  // namespace tessera::data
