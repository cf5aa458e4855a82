// The longest of many texts that another begins with.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "text/pair_table.h"

namespace tessera::text {

class ByteTrie {
 public:
  struct Match {
    int32_t value = -1;  // -1: none begins it
    size_t length = 0;
  };

  // A value of 0 or more; another one of the same text is replaced. The text is not empty.
  void insert(std::string_view text, int32_t value) {
    uint32_t node = 0;
    begins_[static_cast<uint8_t>(text[0])] = true;
    for (const char byte : text) {
      const auto next = static_cast<uint32_t>(values_.size());
      node = static_cast<uint32_t>(children_.insert(node, static_cast<uint8_t>(byte), next));
      if (node == next) values_.push_back(-1);
    }
    values_[node] = value;
  }

  bool may_begin_with(char byte) const { return begins_[static_cast<uint8_t>(byte)]; }

  Match longest(std::string_view text) const {
    Match best;
    if (text.empty() || !may_begin_with(text[0])) return best;
    uint32_t node = 0;
    for (size_t i = 0; i < text.size(); ++i) {
      const uint64_t child = children_.find(node, static_cast<uint8_t>(text[i]));
      if (child == PairTable::kNone) break;
      node = static_cast<uint32_t>(child);
      if (values_[node] >= 0) best = {values_[node], i + 1};
    }
    return best;
  }

 private:
  PairTable children_;  // by node and byte
  std::vector<int32_t> values_ = {-1};
  std::array<bool, 256> begins_{};
};

}  // namespace tessera::text
