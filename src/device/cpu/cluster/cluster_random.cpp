// Uniform random numbers: as many Philox blocks at a time as a vector has lanes.
#include "device/cpu/runtime/highway_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "device/cpu/cluster/cluster_random.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "device/cpu/cluster/cluster_loops.h"

HWY_BEFORE_NAMESPACE();
namespace tessera::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

#if HWY_TARGET != HWY_SCALAR
using Words = hn::ScalableTag<uint32_t>;

struct Product {
  hn::Vec<Words> high;
  hn::Vec<Words> low;
};

HWY_INLINE Product multiply(hn::Vec<Words> x, uint32_t factor) {
  const Words d;
  const hn::Repartition<uint64_t, Words> wide;
  const auto by = hn::Set(d, factor);
  const auto even = hn::MulEven(x, by);
  const auto odd = hn::MulEven(hn::BitCast(d, hn::ShiftRight<32>(hn::BitCast(wide, x))), by);
  return {hn::OddEven(hn::BitCast(d, odd), hn::BitCast(d, hn::ShiftRight<32>(even))),
          hn::OddEven(hn::BitCast(d, hn::ShiftLeft<32>(odd)), hn::BitCast(d, even))};
}
#endif

// Whole blocks from `block` on, while the low half of their number does not overflow; returns how many.
// tessera/base/random.h defines the numbers.
int64_t uniform_blocks(uint64_t seed, uint64_t stream, int bits, uint64_t block, float* out, int64_t blocks) {
#if HWY_TARGET == HWY_SCALAR
  return 0;
#else
  const Words d;
  const hn::RebindToSigned<Words> di;
  const hn::RebindToFloat<Words> df;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto scale = hn::Set(df, 1.0f / static_cast<float>(1u << bits));
  int64_t done = 0;
  for (; done + lanes <= blocks; done += lanes) {
    const uint64_t first = block + static_cast<uint64_t>(done);
    if ((first >> 32) != ((first + static_cast<uint64_t>(lanes)) >> 32)) break;
    auto a = hn::Iota(d, static_cast<uint32_t>(first));
    auto b = hn::Set(d, static_cast<uint32_t>(first >> 32));
    auto c = hn::Set(d, static_cast<uint32_t>(stream));
    auto e = hn::Set(d, static_cast<uint32_t>(stream >> 32));
    auto key0 = static_cast<uint32_t>(seed);
    auto key1 = static_cast<uint32_t>(seed >> 32);
    for (int round = 0; round < 10; ++round) {
      const Product p = multiply(a, 0xD2511F53u);
      const Product q = multiply(c, 0xCD9E8D57u);
      a = hn::Xor(hn::Xor(q.high, b), hn::Set(d, key0));
      c = hn::Xor(hn::Xor(p.high, e), hn::Set(d, key1));
      b = q.low;
      e = p.low;
      key0 += 0x9E3779B9u;
      key1 += 0xBB67AE85u;
    }
    const auto number = [&](auto word) HWY_ATTR {
      return hn::Mul(hn::ConvertTo(df, hn::BitCast(di, hn::ShiftRightSame(word, 32 - bits))), scale);
    };
    hn::StoreInterleaved4(number(a), number(b), number(c), number(e), df, out + 4 * done);
  }
  return done;
#endif
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tessera::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera::cpu {

HWY_EXPORT(uniform_blocks);

void random_uniform(uint64_t seed, uint64_t stream, int bits, uint64_t first, float* out, int64_t n) {
  const Random random(seed, stream);
  int64_t done = 0;
  const auto place = [&] { return first + static_cast<uint64_t>(done); };
  const auto single = [&] {
    out[done] = uniform_of(random.word(place()), bits);
    ++done;
  };
  while (done < n && place() % 4 != 0) single();
  done +=
      4 * HWY_DYNAMIC_DISPATCH(uniform_blocks)(seed, stream, bits, place() / 4, out + done, (n - done) / 4);
  while (done < n) single();
}

}  // namespace tessera::cpu
#endif
