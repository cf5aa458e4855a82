#include "tessera/compile/memory_plan.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "tessera/base/error.h"
#include "tessera/base/rounding.h"
#include "tessera/base/text.h"
#include "tessera/compile/kernel.h"

#include "compile/placed_blocks.h"

namespace tessera {
namespace {

std::string text(int64_t bytes) {
  return format_bytes(static_cast<double>(bytes));
}

// "32.0 MiB (28.0 MiB for values between nodes, 4.0 MiB for parameters and states)"
std::string text_of_parts(const MemoryPlan& plan) {
  std::string parts = fmt::format("{} ({} for values between nodes, {} for parameters and states",
                                  text(plan.total_bytes()), text(plan.peak_bytes), text(plan.variable_bytes));
  if (plan.persistent_bytes > 0)
    parts += fmt::format(", {} for what is made of them once", text(plan.persistent_bytes));
  return parts + ")";
}

}  // namespace

std::vector<int64_t> alive_bytes(const MemoryPlan& plan) {
  int64_t steps = 0;
  for (const MemoryBlock& block : plan.blocks) steps = std::max(steps, block.last + 1);
  std::vector<int64_t> change(static_cast<size_t>(steps) + 1, 0);
  for (const MemoryBlock& block : plan.blocks) {
    const int64_t bytes = round_up(block.bytes, plan.alignment);
    change[static_cast<size_t>(block.first)] += bytes;
    change[static_cast<size_t>(block.last) + 1] -= bytes;
  }
  std::partial_sum(change.begin(), change.end(), change.begin());
  change.pop_back();  // nothing is alive after the last end
  return change;
}

void assign_offsets(MemoryPlan& plan) {
  const std::vector<int64_t> alive = alive_bytes(plan);
  plan.lower_bound_bytes = alive.empty() ? 0 : *std::max_element(alive.begin(), alive.end());

  // Interval coloring is NP-hard; three greedy orders cost little, and the best one is kept.
  const auto& blocks = plan.blocks;
  const auto life = [&](size_t i) { return blocks[i].last - blocks[i].first; };
  const auto by_size = [&](size_t a, size_t b) { return blocks[a].bytes > blocks[b].bytes; };
  const auto by_life = [&](size_t a, size_t b) { return life(a) > life(b); };
  const auto by_start = [&](size_t a, size_t b) { return blocks[a].first < blocks[b].first; };
  std::vector<int64_t> best;
  const auto attempt = [&](auto&& earlier) {
    std::vector<size_t> order(blocks.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(), earlier);
    PlacedBlocks placed(plan);
    for (size_t block : order) placed.place(block);
    if (best.empty() || placed.peak_bytes() < plan.peak_bytes) {
      plan.peak_bytes = placed.peak_bytes();
      best = placed.offsets();
    }
  };
  plan.peak_bytes = 0;
  attempt(by_size);
  attempt(by_life);
  attempt(by_start);
  for (size_t i = 0; i < plan.blocks.size(); ++i) plan.blocks[i].offset = best[i];
}

void verify(const MemoryPlan& plan) {
  std::vector<const MemoryBlock*> by_first;
  for (const MemoryBlock& block : plan.blocks) {
    require(block.offset >= 0 && block.offset % plan.alignment == 0 &&
                block.offset + block.bytes <= plan.peak_bytes,
            ErrorCode::internal, "memory plan: '{}' at {} with {} bytes is outside the arena of {}",
            block.name, block.offset, block.bytes, plan.peak_bytes);
    require(block.first <= block.last, ErrorCode::internal, "memory plan: '{}' dies before it is made",
            block.name);
    if (block.bytes > 0) by_first.push_back(&block);
  }
  std::vector<const MemoryBlock*> by_last = by_first;
  std::sort(by_first.begin(), by_first.end(),
            [](const auto* a, const auto* b) { return a->first < b->first; });
  std::sort(by_last.begin(), by_last.end(), [](const auto* a, const auto* b) { return a->last < b->last; });
  const auto check = [](const MemoryBlock& lower, const MemoryBlock& upper) {
    require(lower.offset + lower.bytes <= upper.offset, ErrorCode::internal,
            "memory plan: '{}' and '{}' overlap at offset {} while both are alive", lower.name, upper.name,
            upper.offset);
  };
  std::map<int64_t, const MemoryBlock*> alive;  // by offset
  auto dead = by_last.begin();
  for (const MemoryBlock* block : by_first) {
    for (; (*dead)->last < block->first; ++dead) alive.erase((*dead)->offset);
    const auto [place, added] = alive.emplace(block->offset, block);
    if (!added) check(*place->second, *block);
    if (place != alive.begin()) check(*std::prev(place)->second, *block);
    if (const auto next = std::next(place); next != alive.end()) check(*block, *next->second);
  }
}

std::vector<const MemoryBlock*> peak_blocks(const MemoryPlan& plan, size_t count) {
  const std::vector<int64_t> alive = alive_bytes(plan);
  const int64_t step = std::max_element(alive.begin(), alive.end()) - alive.begin();
  std::vector<const MemoryBlock*> result;
  for (const MemoryBlock& block : plan.blocks) {
    if (block.first <= step && step <= block.last) result.push_back(&block);
  }
  std::stable_sort(result.begin(), result.end(),
                   [](const auto* a, const auto* b) { return a->bytes > b->bytes; });
  if (result.size() > count) result.resize(count);
  return result;
}

std::string memory_summary(const MemoryPlan& plan, int64_t total_bytes) {
  std::string summary = "memory: " + text_of_parts(plan);
  if (total_bytes > 0) summary += fmt::format(" of {}", text(total_bytes));
  return summary;
}

void refuse_memory(const MemoryPlan& plan, const std::string& graph, const std::string& reason) {
  constexpr size_t kNamed = 5;
  std::vector<std::string> largest;
  for (const MemoryBlock* block : peak_blocks(plan, kNamed)) {
    const std::string type = block->type.empty() ? "" : block->type + " ";
    largest.push_back(fmt::format("{} {}{}", block->name, type, text(block->bytes)));
  }
  fail(ErrorCode::out_of_memory,
       "graph '{}' needs {}, but {}; the largest at the peak: {}; choose a smaller batch or, for training, "
       "train.recompute = true",
       graph, text_of_parts(plan), reason, fmt::join(largest, ", "));
}

void check_fits(const MemoryPlan& plan, const std::string& graph, int64_t total_bytes,
                std::optional<int64_t> free_bytes) {
  const bool exceeds_total = total_bytes > 0 && plan.total_bytes() > total_bytes;
  const bool exceeds_free = free_bytes.has_value() && plan.peak_bytes + plan.persistent_bytes > *free_bytes;
  if (!exceeds_total && !exceeds_free) return;
  const std::string available = free_bytes.has_value() ? text(*free_bytes) + " free of " : "";
  const std::string total = total_bytes > 0 ? text(total_bytes) : "an unknown amount";
  refuse_memory(plan, graph, fmt::format("the device has {}{}", available, total));
}

}  // namespace tessera
