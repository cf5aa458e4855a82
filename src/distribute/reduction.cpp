#include "tessera/distribute/reduction.h"

#include <algorithm>
#include <array>
#include <type_traits>

#include "tessera/base/error.h"
#include "tessera/base/half.h"

namespace tessera::distribute {
namespace {

constexpr int64_t kBlock = 1024;  // elements that are reduced in the first-level cache

template <typename T>
constexpr bool kIsHalf = std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>;

// In which elements are added.
template <typename T>
using Wide = std::conditional_t<kIsHalf<T>, float, std::conditional_t<std::is_integral_v<T>, int64_t, T>>;

// Without the undefined overflow of signed integers.
template <typename W>
W sum(W a, W b) {
  if constexpr (std::is_integral_v<W>) {
    return static_cast<W>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  } else {
    return a + b;
  }
}

// A NaN stays, and is taken up.
template <typename W>
W larger(W a, W b) {
  return b > a || b != b ? b : a;
}
template <typename W>
W smaller(W a, W b) {
  return b < a || b != b ? b : a;
}

template <typename T, typename Combine>
void combine_block(std::span<const std::byte* const> sources, int64_t begin, int64_t count, Wide<T>* values,
                   Combine&& combine) {
  for (size_t rank = 0; rank < sources.size(); ++rank) {
    const T* source = reinterpret_cast<const T*>(sources[rank]) + begin;
    for (int64_t i = 0; i < count; ++i) {
      const auto value = static_cast<Wide<T>>(source[i]);  // NOLINT(bugprone-signed-char-misuse): a number
      values[i] = rank == 0 ? value : combine(values[i], value);
    }
  }
}

template <typename T>
void reduce_all(std::span<const std::byte* const> sources, std::byte* target, int64_t elements,
                Reduction reduction) {
  using W = Wide<T>;
  std::array<W, kBlock> values;
  for (int64_t begin = 0; begin < elements; begin += kBlock) {
    const int64_t count = std::min(kBlock, elements - begin);
    switch (reduction) {
      case Reduction::sum:
      case Reduction::mean:
        combine_block<T>(sources, begin, count, values.data(), sum<W>);
        break;
      case Reduction::maximum:
        combine_block<T>(sources, begin, count, values.data(), larger<W>);
        break;
      case Reduction::minimum:
        combine_block<T>(sources, begin, count, values.data(), smaller<W>);
        break;
    }
    if (reduction == Reduction::mean) {
      for (int64_t i = 0; i < count; ++i) values[static_cast<size_t>(i)] /= static_cast<W>(sources.size());
    }
    T* to = reinterpret_cast<T*>(target) + begin;
    for (int64_t i = 0; i < count; ++i) to[i] = static_cast<T>(values[static_cast<size_t>(i)]);
  }
}

}  // namespace

void reduce_elements(std::span<const std::byte* const> sources, std::byte* target, int64_t elements,
                     DataType type, Reduction reduction) {
  switch (type) {
    case DataType::fp32:
      return reduce_all<float>(sources, target, elements, reduction);
    case DataType::fp64:
      return reduce_all<double>(sources, target, elements, reduction);
    case DataType::fp16:
      return reduce_all<Float16>(sources, target, elements, reduction);
    case DataType::bf16:
      return reduce_all<BFloat16>(sources, target, elements, reduction);
    case DataType::int8:
      return reduce_all<int8_t>(sources, target, elements, reduction);
    case DataType::uint8:
      return reduce_all<uint8_t>(sources, target, elements, reduction);
    case DataType::int32:
      return reduce_all<int32_t>(sources, target, elements, reduction);
    case DataType::int64:
      return reduce_all<int64_t>(sources, target, elements, reduction);
    default:
      fail(ErrorCode::invalid_argument, "{} cannot be reduced over ranks", to_string(type));
  }
}

}  // namespace tessera::distribute
