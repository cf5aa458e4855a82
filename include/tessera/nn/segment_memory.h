// What a network remembers of the text before the segment that it reads (Dai et al., "Transformer-XL:
// Attentive Language Models beyond a Fixed-Length Context", 2019, arXiv:1901.02860).
#pragma once

#include <cstdint>
#include <string>

#include "tessera/nn/row_state.h"

namespace tessera::nn {

// A segment of each row of a batch.
struct Segment {
  Value* begins;           // int32 [rows]; not 0 where nothing stands before it: what was kept is forgotten
  int64_t tokens;          // of each row
  Value* count = nullptr;  // int32 [1], how many there are, where those after them fill up; null: all
};

// Of a batch's rows, each of which goes on where it ended in the batch before: what a layer was given of the
// last tokens, as states that advance. No gradient reaches them.
class SegmentMemory {
 public:
  // Remembers so many tokens; 0: none. States begin with that name, so that networks in one set of variables
  // may remember different lengths. Throws Error(invalid_argument) for a negative length.
  SegmentMemory(Context& context, std::string name, int64_t length, const Segment& segment);

  int64_t length() const { return length_; }
  // fp32 [rows, 1, tokens, length + tokens]: what, added to scores, hides memories that were never filled and
  // tokens after that of the query.
  Value* hidden() const { return hidden_; }
  // What was kept in the present scope and then x: [rows, tokens, width] -> [rows, length + tokens, width].
  // The last `length` tokens of it are kept for the next segment. Once in a scope.
  Value* extend(Context& context, Value* x) const;

 private:
  std::string name_;
  int64_t length_;
  Segment segment_;
  Value* hidden_ = nullptr;
};

// fp32 [1, 1, tokens, tokens]: what, added to scores, hides tokens after that of the query.
Value* hidden_after(Graph& graph, int64_t tokens);

}  // namespace tessera::nn
