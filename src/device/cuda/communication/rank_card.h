// What each rank of a group says of its GPU before they are connected.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>

namespace tessera::cuda {

struct RankCard {
  std::array<char, 16> gpu{};   // Context::identity()
  int32_t version = 0;          // of NCCL; 0: there is none
  std::array<char, 236> why{};  // there is none, for people

  void explain(const std::string& reason);
};

// Why GPUs of such ranks cannot be connected, in their order; "" where they can: each has one of its own, and
// all have the same NCCL.
std::string refusal_of(std::span<const RankCard> cards);

}  // namespace tessera::cuda
