#include "tessera/base/random.h"

#include <cmath>
#include <numbers>

namespace tessera {

std::array<double, 2> normals_of(uint32_t first, uint32_t second) {
  // first + 1 is in (0, 2^32], so that the logarithm is finite.
  const double radius = std::sqrt(-2.0 * std::log((first + 1.0) * 0x1p-32));
  const double angle = 2.0 * std::numbers::pi * (second * 0x1p-32);
  return {radius * std::cos(angle), radius * std::sin(angle)};
}

double Random::normal(uint64_t index) const {
  const std::array<uint32_t, 4> words = block(index / 4);
  const size_t pair = index % 4 / 2 * 2;
  return normals_of(words[pair], words[pair + 1])[index % 2];
}

std::array<float, 4> Random::uniforms(uint64_t block) const {
  std::array<float, 4> numbers{};
  const std::array<uint32_t, 4> words = this->block(block);
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = uniform_of(words[i]);
  return numbers;
}

std::array<double, 4> Random::normals(uint64_t block) const {
  const std::array<uint32_t, 4> words = this->block(block);
  const std::array<double, 2> first = normals_of(words[0], words[1]);
  const std::array<double, 2> second = normals_of(words[2], words[3]);
  return {first[0], first[1], second[0], second[1]};
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
