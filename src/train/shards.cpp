#include "train/shards.h"

#include <algorithm>

#include "tessera/ops/functions.h"

namespace tessera::train {
namespace {

void join_sums(Graph& graph, const std::vector<Node*>& sums) {
  std::vector<Value*> inputs;
  for (const Node* sum : sums) inputs.insert(inputs.end(), sum->inputs().begin(), sum->inputs().end());
  const Node* joined = ops::apply("all_reduce", inputs, sums.front()->attributes());
  size_t next = 0;
  for (Node* sum : sums) {
    for (const auto& output : sum->outputs()) graph.replace_all_uses(output.get(), joined->output(next++));
    graph.erase(sum);
  }
  graph.sort();
}

}  // namespace

Value* all_parts(Value* whole, const nn::Shard& shard) {
  const int64_t elements = element_count(shard.whole);
  const int64_t padded = shard.ranks * shard.size();
  Value* flat = ops::reshape(whole, {elements});
  return padded == elements ? flat : ops::pad(flat, {0}, {padded - elements});
}

Value* own_part(Value* whole, const nn::Shard& shard) {
  const int64_t begin = shard.rank * shard.size();
  return ops::slice(all_parts(whole, shard), {begin}, {begin + shard.size()});
}

Value* joined_parts(Value* parts, const nn::Shard& shard) {
  const int64_t elements = element_count(shard.whole);
  Value* flat = shard.ranks * shard.size() == elements ? parts : ops::slice(parts, {0}, {elements});
  return ops::reshape(flat, to_symbolic(shard.whole));
}

void SumsOfParts::add(const std::vector<Node*>& sums) {
  by_place_.resize(std::max(by_place_.size(), sums.size()));
  for (size_t i = 0; i < sums.size(); ++i) by_place_[i].push_back(sums[i]);
}

void SumsOfParts::join(Graph& graph) const {
  for (const std::vector<Node*>& sums : by_place_) join_sums(graph, sums);
}

}  // namespace tessera::train
