// From words to tokens.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/text/tokenizer.h"

namespace tessera::text {

// A token, and the bytes of its word up to which it goes.
struct Piece {
  int32_t id;
  uint32_t begin;
  uint32_t end;
};

// What byte pairs are joined in; of one thread at a time, and kept so that no word needs memory of its own.
struct JoinMemory {
  struct Symbol {
    uint32_t id;
    uint32_t begin;
    uint32_t end;      // equal to begin: joined to the one before
    int32_t previous;  // -1: none
    int32_t next;
  };
  struct Join {
    uint32_t rank;
    uint32_t left;  // place of the left symbol
    uint32_t made;  // id of both together
  };
  std::vector<Symbol> symbols;
  std::vector<Join> joins;  // a heap
};

class Model {
 public:
  virtual ~Model() = default;
  virtual std::string_view kind() const = 0;
  // Whether the tokens of a word depend on nothing else, so that they may be remembered.
  virtual bool by_words() const { return true; }
  // After those that are there.
  virtual void tokenize(std::string_view word, std::vector<Piece>& pieces, JoinMemory& memory) const = 0;
};

}  // namespace tessera::text
