// Blocks that have their place in an arena, and where there is room for one more.
#pragma once

#include <vector>

#include "tessera/compile/memory_plan.h"

namespace tessera {

class PlacedBlocks {
 public:
  // Without any block yet; the plan must outlive this.
  explicit PlacedBlocks(const MemoryPlan& plan);

  // Puts the block at the lowest offset that is free over its whole life.
  void place(size_t block);
  const std::vector<int64_t>& offsets() const { return offsets_; }  // of the placed ones
  int64_t peak_bytes() const { return peak_; }

 private:
  // How many of the blocks before, or at, a step; as Fenwick, "A new data structure for cumulative frequency
  // tables" (1994).
  class Count {
   public:
    explicit Count(size_t steps) : sums_(steps + 1, 0) {}
    void add(size_t step);
    size_t until(size_t step) const;  // of all steps before

   private:
    std::vector<size_t> sums_;
  };

  // What a block takes of the arena.
  struct Range {
    int64_t begin;
    int64_t end;
    bool operator>(const Range& other) const { return begin > other.begin; }
  };

  size_t count_alive_with(const MemoryBlock& block) const;
  std::vector<Range> alive_with(const MemoryBlock& block) const;
  int64_t lowest_free_of_few(size_t block) const;
  int64_t lowest_free_of_many(size_t block);
  void sort_placed();

  const MemoryPlan& plan_;
  size_t steps_;
  std::vector<int64_t> bytes_;  // aligned
  std::vector<int64_t> offsets_;
  int64_t peak_ = 0;
  std::vector<size_t> placed_;
  size_t sorted_ = 0;  // so many of them stand by their offsets
  Count firsts_;
  Count lasts_;
  std::vector<std::vector<size_t>> starting_;  // at each step
  // A segment tree over the steps: node i covers those of 2i and 2i + 1, and lists the blocks that live all
  // that time, but not all of its parent's.
  size_t leaves_;
  std::vector<std::vector<size_t>> living_;
};

}  // namespace tessera
