#include "data/tokens/even_batches.h"

#include <algorithm>
#include <utility>

#include "tessera/data/order.h"

namespace tessera::data {
namespace {

uint64_t reversed_bits(int64_t number) {
  auto bits = static_cast<uint64_t>(number);
  uint64_t reversed = 0;
  for (int bit = 0; bit < 64; ++bit, bits >>= 1) reversed = reversed << 1 | (bits & 1);
  return reversed;
}

// Which stratum each place of a batch takes from: those of rank 0 first. By reversed bits, so that halves,
// quarters and so on of a batch each have every second, every fourth stratum.
std::vector<int64_t> strata_by_place(int64_t strata, int64_t ranks) {
  std::vector<int64_t> result = sequential_order(strata);
  const auto place_of = [&](int64_t stratum) {
    return std::pair(reversed_bits(stratum % ranks), reversed_bits(stratum / ranks));
  };
  std::ranges::sort(result, {}, place_of);
  return result;
}

}  // namespace

EvenBatches::EvenBatches(std::vector<int64_t> lengths, int64_t size)
    : lengths_(std::move(lengths)), by_length_(sequential_order(std::ssize(lengths_))), size_(size) {
  std::ranges::stable_sort(by_length_, {}, [&](int64_t text) { return lengths_[static_cast<size_t>(text)]; });
}

int64_t EvenBatches::most_tokens() const {
  int64_t tokens = 0;
  for (int64_t stratum = 0; stratum < size_; ++stratum) {
    const auto longest = static_cast<size_t>((stratum + 1) * count() / size_ - 1);
    tokens += lengths_[static_cast<size_t>(by_length_[longest])];
  }
  return tokens;
}

std::vector<int64_t> EvenBatches::order(const std::vector<int64_t>& texts, int64_t ranks) const {
  const int64_t strata = size_ * ranks;
  const int64_t batches = count() / strata;
  const std::vector<int64_t> strata_of_places = strata_by_place(strata, ranks);
  std::vector<int64_t> place_of(by_length_.size());  // of each text in its batch
  for (int64_t place = 0; place < strata; ++place) {
    const int64_t stratum = strata_of_places[static_cast<size_t>(place)];
    const int64_t end = (stratum + 1) * count() / strata;
    for (int64_t i = stratum * count() / strata; i < end; ++i)
      place_of[static_cast<size_t>(by_length_[static_cast<size_t>(i)])] = place;
  }
  std::vector<int64_t> taken(static_cast<size_t>(strata), 0);  // of the stratum of each place
  std::vector<int64_t> result(static_cast<size_t>(batches * strata));
  for (const int64_t text : texts) {
    const int64_t place = place_of[static_cast<size_t>(text)];
    const int64_t batch = taken[static_cast<size_t>(place)]++;
    if (batch < batches) result[static_cast<size_t>(batch * strata + place)] = text;
  }
  return result;
}

}  // namespace tessera::data
