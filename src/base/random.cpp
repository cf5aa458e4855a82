#include "tessera/base/random.h"

#include <cmath>
#include <numbers>

namespace tessera {

std::array<uint32_t, 4> philox(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{0xD2511F53u} * counter[0];
    const uint64_t b = uint64_t{0xCD9E8D57u} * counter[2];
    counter = {static_cast<uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(b),
               static_cast<uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(a)};
    key[0] += 0x9E3779B9u;
    key[1] += 0xBB67AE85u;
  }
  return counter;
}

uint32_t Random::word(uint64_t index) const {
  const uint64_t block = index / 4;
  return philox({static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32),
                 static_cast<uint32_t>(stream_), static_cast<uint32_t>(stream_ >> 32)},
                {static_cast<uint32_t>(seed_), static_cast<uint32_t>(seed_ >> 32)})[index % 4];
}

double Random::normal(uint64_t index) const {
  // 1 - u is in (0, 1], so that the logarithm is finite.
  const double radius = std::sqrt(-2.0 * std::log((word(2 * index) + 1.0) * 0x1p-32));
  return radius * std::cos(2.0 * std::numbers::pi * word(2 * index + 1) * 0x1p-32);
}

uint64_t Random::below(uint64_t index, uint64_t bound) const {
  const uint64_t wide = (static_cast<uint64_t>(word(2 * index)) << 32) | word(2 * index + 1);
  return static_cast<uint64_t>((static_cast<unsigned __int128>(wide) * bound) >> 64);
}

uint64_t hash_name(const char* text, uint64_t length) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (uint64_t i = 0; i < length; ++i) hash = (hash ^ static_cast<unsigned char>(text[i])) * 0x100000001b3u;
  return hash;
}

}  // namespace tessera
