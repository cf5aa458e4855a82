#include "data/tokens/packed_rows.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace tessera::data {

std::vector<std::vector<int64_t>> packed_rows(const std::vector<int64_t>& lengths, int64_t row,
                                              int64_t most) {
  const auto length = [&](int64_t text) { return lengths[static_cast<size_t>(text)]; };
  std::vector<int64_t> order(lengths.size());
  std::iota(order.begin(), order.end(), int64_t{0});
  std::ranges::stable_sort(order, [&](int64_t a, int64_t b) { return length(a) > length(b); });
  std::vector<std::vector<int64_t>> rows;
  std::map<int64_t, std::vector<size_t>> open;  // rows that take more texts, by their room
  for (const int64_t text : order) {
    size_t place = rows.size();
    int64_t room = row;
    if (const auto found = open.lower_bound(length(text)); found != open.end()) {
      room = found->first;
      place = found->second.back();
      found->second.pop_back();
      if (found->second.empty()) open.erase(found);
    } else {
      rows.emplace_back();
    }
    rows[place].push_back(text);
    if (std::ssize(rows[place]) < most) open[room - length(text)].push_back(place);
  }
  return rows;
}

}  // namespace tessera::data
