// The tokens of words that were met before.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/model.h"

namespace tessera::text {

// Bounded: when it is full it forgets all. Of one thread at a time.
class WordCache {
 public:
  // Of fewer bytes than that; longer words seldom come again.
  static constexpr size_t kLongestWord = 48;

  // Whether it is known.
  bool find(std::string_view word, std::span<const Piece>& pieces) const {
    if (slots_.empty()) return false;
    const Slot& slot = slots_[place_of(word, hash_of(word))];
    if (slot.length == 0) return false;
    pieces = {pieces_.data() + slot.first_piece, slot.pieces};
    return true;
  }

  void add(std::string_view word, std::span<const Piece> pieces) {
    if (word.empty() || word.size() >= kLongestWord || pieces.size() >= kLongestWord) return;
    if (slots_.empty() || 2 * (count_ + 1) > slots_.size()) clear();
    const uint64_t hash = hash_of(word);
    Slot& slot = slots_[place_of(word, hash)];
    if (slot.length != 0) return;
    slot = {static_cast<uint32_t>(hash), static_cast<uint32_t>(words_.size()),
            static_cast<uint32_t>(pieces_.size()), static_cast<uint16_t>(word.size()),
            static_cast<uint16_t>(pieces.size())};
    words_ += word;
    pieces_.insert(pieces_.end(), pieces.begin(), pieces.end());
    ++count_;
  }

 private:
  static constexpr size_t kSlots = size_t{1} << 15;

  struct Slot {
    uint32_t hash = 0;
    uint32_t first_byte = 0;
    uint32_t first_piece = 0;
    uint16_t length = 0;  // 0: free
    uint16_t pieces = 0;
  };

  static uint64_t hash_of(std::string_view word) { return std::hash<std::string_view>()(word); }

  size_t place_of(std::string_view word, uint64_t hash) const {
    size_t place = static_cast<size_t>(hash >> 32) % kSlots;
    while (slots_[place].length != 0 && !holds(slots_[place], word, hash)) place = (place + 1) % kSlots;
    return place;
  }

  bool holds(const Slot& slot, std::string_view word, uint64_t hash) const {
    return slot.hash == static_cast<uint32_t>(hash) && slot.length == word.size() &&
           std::string_view(words_).substr(slot.first_byte, slot.length) == word;
  }

  void clear() {
    slots_.assign(kSlots, {});
    words_.clear();
    pieces_.clear();
    count_ = 0;
  }

  std::vector<Slot> slots_;
  std::string words_;
  std::vector<Piece> pieces_;
  size_t count_ = 0;
};

}  // namespace tessera::text
