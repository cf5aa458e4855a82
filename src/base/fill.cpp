#include "tessera/base/fill.h"

#include <algorithm>

#include "tessera/base/parallel.h"
#include "tessera/base/rounding.h"

namespace tessera {
namespace {

// Elements that a thread fills at a time: some milliseconds of normal numbers, of which starting a thread is
// little. Elements of less than a byte share none with those of another part.
constexpr int64_t kPart = int64_t{1} << 16;
static_assert(kPart % 8 == 0);

}  // namespace

void fill_by_blocks(Tensor& tensor, const std::function<std::array<double, 4>(uint64_t block)>& draw) {
  const int64_t size = tensor.size();
  const bool plain = tensor.data_type() == DataType::fp32;
  float* const values = plain ? tensor.data<float>().data() : nullptr;
  for_each_in_parallel(quotient_rounded_up(size, kPart), [&](int64_t part) {
    const int64_t end = std::min(size, (part + 1) * kPart);
    for (int64_t begin = part * kPart; begin < end; begin += 4) {
      const std::array<double, 4> numbers = draw(static_cast<uint64_t>(begin / 4));
      for (int64_t i = begin; i < std::min(begin + 4, end); ++i) {
        const double number = numbers[static_cast<size_t>(i - begin)];
        if (plain) {
          values[i] = static_cast<float>(number);
        } else {
          tensor.set(i, number);
        }
      }
    }
  });
}

}  // namespace tessera
