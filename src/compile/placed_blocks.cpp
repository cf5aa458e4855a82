#include "compile/placed_blocks.h"

#include <algorithm>
#include <bit>
#include <functional>

#include "tessera/base/rounding.h"

namespace tessera {
namespace {

size_t count_steps(const MemoryPlan& plan) {
  int64_t steps = 0;
  for (const MemoryBlock& block : plan.blocks) steps = std::max(steps, block.last + 1);
  return static_cast<size_t>(steps);
}

bool alive_together(const MemoryBlock& a, const MemoryBlock& b) {
  return a.first <= b.last && b.first <= a.last;
}

}  // namespace

void PlacedBlocks::Count::add(size_t step) {
  for (size_t i = step + 1; i < sums_.size(); i += i & -i) ++sums_[i];
}

size_t PlacedBlocks::Count::until(size_t step) const {
  size_t sum = 0;
  for (size_t i = step; i > 0; i -= i & -i) sum += sums_[i];
  return sum;
}

PlacedBlocks::PlacedBlocks(const MemoryPlan& plan)
    : plan_(plan),
      steps_(count_steps(plan)),
      offsets_(plan.blocks.size(), -1),
      firsts_(steps_),
      lasts_(steps_),
      starting_(steps_),
      leaves_(std::bit_ceil(steps_)),
      living_(2 * leaves_) {
  for (const MemoryBlock& block : plan.blocks) bytes_.push_back(round_up(block.bytes, plan.alignment));
}

size_t PlacedBlocks::count_alive_with(const MemoryBlock& block) const {
  return firsts_.until(static_cast<size_t>(block.last) + 1) - lasts_.until(static_cast<size_t>(block.first));
}

std::vector<PlacedBlocks::Range> PlacedBlocks::alive_with(const MemoryBlock& block) const {
  std::vector<Range> result;
  const auto append = [&](const std::vector<size_t>& blocks) {
    for (size_t other : blocks) result.push_back({offsets_[other], offsets_[other] + bytes_[other]});
  };
  const auto first = static_cast<size_t>(block.first);
  for (size_t node = leaves_ + first; node > 0; node /= 2) append(living_[node]);
  for (size_t step = first + 1; step <= static_cast<size_t>(block.last); ++step) append(starting_[step]);
  return result;
}

// Looks at those that are alive at the same time, and sorts as many as there is no room between.
int64_t PlacedBlocks::lowest_free_of_few(size_t block) const {
  std::vector<Range> others = alive_with(plan_.blocks[block]);
  std::make_heap(others.begin(), others.end(), std::greater<>());
  int64_t offset = 0;
  while (!others.empty() && others.front().begin < offset + bytes_[block]) {
    offset = std::max(offset, others.front().end);
    std::pop_heap(others.begin(), others.end(), std::greater<>());
    others.pop_back();
  }
  return offset;
}

// Looks at all that are placed, in their order.
int64_t PlacedBlocks::lowest_free_of_many(size_t block) {
  sort_placed();
  int64_t offset = 0;
  for (size_t other : placed_) {
    if (!alive_together(plan_.blocks[block], plan_.blocks[other])) continue;
    if (offsets_[other] >= offset + bytes_[block]) break;
    offset = std::max(offset, offsets_[other] + bytes_[other]);
  }
  return offset;
}

void PlacedBlocks::sort_placed() {
  const auto by_offset = [this](size_t a, size_t b) { return offsets_[a] < offsets_[b]; };
  const auto rest = placed_.begin() + static_cast<std::ptrdiff_t>(sorted_);
  std::sort(rest, placed_.end(), by_offset);
  std::inplace_merge(placed_.begin(), rest, placed_.end(), by_offset);
  sorted_ = placed_.size();
}

void PlacedBlocks::place(size_t block) {
  const MemoryBlock& own = plan_.blocks[block];
  const size_t alive = count_alive_with(own);
  const bool are_few = alive * static_cast<size_t>(std::bit_width(alive)) < placed_.size();
  offsets_[block] = are_few ? lowest_free_of_few(block) : lowest_free_of_many(block);
  peak_ = std::max(peak_, offsets_[block] + bytes_[block]);
  placed_.push_back(block);

  const auto first = static_cast<size_t>(own.first);
  const auto last = static_cast<size_t>(own.last);
  firsts_.add(first);
  lasts_.add(last);
  starting_[first].push_back(block);
  size_t left = leaves_ + first;
  for (size_t right = leaves_ + last + 1; left < right; left /= 2, right /= 2) {
    if (left % 2 == 1) living_[left++].push_back(block);
    if (right % 2 == 1) living_[--right].push_back(block);
  }
}

}  // namespace tessera
