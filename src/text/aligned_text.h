// Text on its way through normalizers, and where its bytes come from.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tessera/text/tokenizer.h"

namespace tessera::text {

// Well-formed UTF-8.
struct AlignedText {
  std::string bytes;
  std::vector<Span> origins;  // of each byte, in what the user gave; none where nobody asks
  bool tracked = false;

  void clear(bool track) {
    bytes.clear();
    origins.clear();
    tracked = track;
  }
  // All of it from one place.
  void append(std::string_view part, Span origin) {
    bytes += part;
    if (tracked) origins.insert(origins.end(), part.size(), origin);
  }
  void append(const AlignedText& source, size_t begin, size_t end) {
    bytes.append(source.bytes, begin, end - begin);
    if (tracked) {
      const auto first = source.origins.begin();
      origins.insert(origins.end(), first + static_cast<int64_t>(begin), first + static_cast<int64_t>(end));
    }
  }
  // Of the bytes from `begin` to `end`; of none, no place.
  Span origin_of(size_t begin, size_t end) const {
    if (!tracked || begin >= end) return {};
    return {origins[begin].begin, origins[end - 1].end};
  }
};

}  // namespace tessera::text
