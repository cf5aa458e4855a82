// Text on its way through normalizers, and where its bytes come from.
#pragma once

#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tessera/base/error.h"
#include "tessera/text/tokenizer.h"

namespace tessera::text {

// Well-formed UTF-8.
struct AlignedText {
  std::string bytes;
  std::vector<Span> origins;  // of each byte, in what the user gave; none where nobody asks
  bool tracked = false;
  size_t most_bytes = std::numeric_limits<size_t>::max();  // more are refused with Error(invalid_argument)

  void clear(bool track, size_t most = std::numeric_limits<size_t>::max()) {
    bytes.clear();
    origins.clear();
    tracked = track;
    most_bytes = most;
  }
  // All of it from one place.
  void append(std::string_view part, Span origin) {
    check_room(part.size());
    bytes += part;
    if (tracked) origins.insert(origins.end(), part.size(), origin);
  }
  void append(const AlignedText& source, size_t begin, size_t end) {
    check_room(end - begin);
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

 private:
  void check_room(size_t more) const {
    require(more <= most_bytes - bytes.size(), ErrorCode::invalid_argument,
            "the tokenizer's normalizers make more than {} bytes of one text", most_bytes);
  }
};

}  // namespace tessera::text
