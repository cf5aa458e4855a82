// Which of many texts share a row, so that little of it is left empty.
#pragma once

#include <cstdint>
#include <vector>

namespace tessera::data {

// The numbers of the texts in each row: the longest text first, each in the row with the least room that has
// enough, of `most` texts at most (best fit decreasing; Krell et al. 2021, arXiv:2107.02027). Texts are no
// longer than a row. Of equal ones the earlier comes first.
std::vector<std::vector<int64_t>> packed_rows(const std::vector<int64_t>& lengths, int64_t row, int64_t most);

}  // namespace tessera::data
