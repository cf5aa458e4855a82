#include "passes/dependence.h"

namespace tessera::passes {
namespace {

constexpr size_t kBits = 64;

}  // namespace

Dependence::Dependence(const Graph& graph, const std::vector<const Node*>& sources) {
  for (const Node* source : sources) bit_of_.emplace(source, bit_of_.size());
  words_ = (bit_of_.size() + kBits - 1) / kBits;
  bits_.resize(words_ * graph.nodes().size());
  for (const auto& node : graph.nodes()) {
    const size_t row = row_of_.size() * words_;
    row_of_.emplace(node.get(), row);
    for (const Value* input : node->inputs()) {
      if (input->producer() == nullptr) continue;
      const size_t before = row_of_.at(input->producer());
      for (size_t word = 0; word < words_; ++word) bits_[row + word] |= bits_[before + word];
    }
    if (const auto bit = bit_of_.find(node.get()); bit != bit_of_.end())
      bits_[row + bit->second / kBits] |= uint64_t{1} << (bit->second % kBits);
  }
}

bool Dependence::depends(const Node& node, const Node& source) const {
  const size_t bit = bit_of_.at(&source);
  return (bits_[row_of_.at(&node) + bit / kBits] >> (bit % kBits) & 1) != 0;
}

}  // namespace tessera::passes
