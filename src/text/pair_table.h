// A number for each of many pairs of numbers, in one array.
#pragma once

#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace tessera::text {

// Open addressing with linear steps; at most half of the places are taken.
class PairTable {
 public:
  static constexpr uint64_t kNone = std::numeric_limits<uint64_t>::max();

  void reserve(size_t count) {
    while (slots_.size() < 2 * count) grow();
  }
  // Which of the two were there before stays; returns the value that is there now.
  uint64_t insert(uint32_t first, uint32_t second, uint64_t value) {
    if (2 * (count_ + 1) > slots_.size()) grow();
    Slot& slot = slots_[place_of(key_of(first, second))];
    if (slot.key == kNone) {
      slot = {key_of(first, second), value};
      ++count_;
    }
    return slot.value;
  }
  void assign(uint32_t first, uint32_t second, uint64_t value) {
    insert(first, second, value);
    slots_[place_of(key_of(first, second))].value = value;
  }
  // kNone where there is none. No key is made of the largest two numbers.
  uint64_t find(uint32_t first, uint32_t second) const {
    return slots_.empty() ? kNone : slots_[place_of(key_of(first, second))].value;
  }

 private:
  struct Slot {
    uint64_t key = kNone;
    uint64_t value = kNone;
  };

  static uint64_t key_of(uint32_t first, uint32_t second) {
    return static_cast<uint64_t>(first) << 32 | second;
  }

  size_t place_of(uint64_t key) const {
    constexpr uint64_t kGoldenRatio = 0x9E3779B97F4A7C15u;
    const size_t mask = slots_.size() - 1;
    size_t place = static_cast<size_t>(key * kGoldenRatio >> 32) & mask;
    while (slots_[place].key != kNone && slots_[place].key != key) place = (place + 1) & mask;
    return place;
  }

  void grow() {
    constexpr size_t kFirst = 16;
    std::vector<Slot> old =
        std::exchange(slots_, std::vector<Slot>(slots_.empty() ? kFirst : 2 * slots_.size()));
    for (const Slot& slot : old) {
      if (slot.key != kNone) slots_[place_of(slot.key)] = slot;
    }
  }

  std::vector<Slot> slots_;  // as many as a power of two
  size_t count_ = 0;
};

}  // namespace tessera::text
