#include "device/cuda/communication/rank_card.h"

#include <algorithm>

#include <fmt/format.h>

namespace tessera::cuda {

void RankCard::explain(const std::string& reason) {
  const size_t length = std::min(reason.size(), why.size() - 1);
  std::copy_n(reason.begin(), length, why.begin());
  why[length] = '\0';
}

std::string refusal_of(std::span<const RankCard> cards) {
  for (size_t rank = 0; rank < cards.size(); ++rank) {
    const RankCard& card = cards[rank];
    if (card.version == 0) return fmt::format("rank {} has no NCCL: {}", rank, card.why.data());
    if (card.version != cards[0].version)
      return fmt::format("rank 0 has NCCL {} and rank {} has {}", cards[0].version, rank, card.version);
    for (size_t other = 0; other < rank; ++other) {
      if (cards[other].gpu == card.gpu) return fmt::format("ranks {} and {} share one GPU", other, rank);
    }
  }
  return "";
}

}  // namespace tessera::cuda
