#include "device/cuda/runtime/memory_pool.h"

#include <algorithm>
#include <iterator>
#include <tuple>

#include "tessera/base/error.h"
#include "tessera/base/rounding.h"

namespace tessera::cuda {

MemoryPool::MemoryPool(VirtualMemory& memory, const MemoryPoolOptions& options)
    : memory_(memory), options_(options), granularity_(memory.granularity()) {
  require(options.large_granule_bytes > 0 && options.large_granule_bytes % granularity_ == 0,
          ErrorCode::invalid_argument, "granules of {} bytes are no multiple of {}",
          options.large_granule_bytes, granularity_);
}

MemoryPool::~MemoryPool() {
  give_back(0);
  if (!granules_.empty()) return;  // the device cannot be waited for any more: the driver cleans up
  for (const Range& range : reserved_) memory_.release(range.begin, range.bytes());
}

std::optional<uint64_t> MemoryPool::allocate(int64_t bytes) {
  const int64_t size = round_up(std::max<int64_t>(bytes, 1), kAlignment);
  const std::lock_guard lock(mutex_);
  std::optional<uint64_t> place = find_place(size);
  if (!place.has_value()) {
    reserve(size);
    place = find_place(size);
  }
  const Range block{*place, *place + static_cast<uint64_t>(size)};
  hold(block);  // what is mapped there already must not be moved away
  bool filled = false;
  try {
    filled = fill(block);
  } catch (...) {
    let_go(block);
    throw;
  }
  if (!filled) {
    let_go(block);
    give_back(options_.idle_limit_bytes);
    return std::nullopt;
  }
  const auto range = free_.find(block.begin);
  const uint64_t range_end = range->second;
  free_.erase(range);
  if (block.end < range_end) free_.emplace(block.end, range_end);
  blocks_.emplace(block.begin, block.end);
  use_.block_bytes += size;
  use_.peak_block_bytes = std::max(use_.peak_block_bytes, use_.block_bytes);
  return block.begin;
}

void MemoryPool::free(uint64_t address) noexcept {
  const std::lock_guard lock(mutex_);
  const auto found = blocks_.find(address);
  if (found == blocks_.end()) return;
  const Range block{found->first, found->second};
  blocks_.erase(found);
  use_.block_bytes -= block.bytes();
  let_go(block);
  add_free(block);
  give_back(options_.idle_limit_bytes);
}

MemoryPoolUse MemoryPool::use() const {
  const std::lock_guard lock(mutex_);
  return use_;
}

void MemoryPool::reserve(int64_t bytes) {
  // The free granule in front keeps blocks from reaching over two ranges that happen to touch.
  const int64_t size = std::max(options_.range_bytes, bytes) + granularity_;
  const int64_t rounded = round_up(size, granularity_);
  const uint64_t begin = memory_.reserve(rounded);
  reserved_.push_back({begin, begin + static_cast<uint64_t>(rounded)});
  add_free({begin + static_cast<uint64_t>(granularity_), reserved_.back().end});
}

// Where the least memory has to be mapped; among those in the smallest room, so that large ones stay large.
std::optional<uint64_t> MemoryPool::find_place(int64_t bytes) const {
  using Cost = std::tuple<int64_t, uint64_t>;
  std::optional<uint64_t> best;
  Cost best_cost;
  for (const auto& [begin, end] : free_) {
    if (end - begin < static_cast<uint64_t>(bytes)) continue;
    int64_t missing = 0;
    for (const Range& gap : gaps({begin, begin + static_cast<uint64_t>(bytes)})) missing += gap.bytes();
    const Cost cost{missing, end - begin};
    if (best.has_value() && cost >= best_cost) continue;
    best = begin;
    best_cost = cost;
  }
  return best;
}

// The unmapped parts of the granules under a range.
std::vector<MemoryPool::Range> MemoryPool::gaps(Range range) const {
  const auto unit = static_cast<uint64_t>(granularity_);
  const uint64_t end = round_up(range.end, unit);
  uint64_t reached = range.begin / unit * unit;
  std::vector<Range> result;
  auto next = granules_.upper_bound(reached);
  if (next != granules_.begin()) --next;
  for (; reached < end; ++next) {
    const uint64_t granule = next == granules_.end() ? end : std::min(next->first, end);
    if (granule > reached) result.push_back({reached, granule});
    if (next == granules_.end()) break;
    reached = std::max(reached, next->first + static_cast<uint64_t>(next->second.granule.bytes));
  }
  return result;
}

// The first that reaches beyond the address.
std::map<uint64_t, MemoryPool::Mapped>::iterator MemoryPool::first_granule(uint64_t address) {
  const auto next = granules_.upper_bound(address);
  if (next == granules_.begin()) return next;
  const auto before = std::prev(next);
  return before->first + static_cast<uint64_t>(before->second.granule.bytes) > address ? before : next;
}

void MemoryPool::hold(Range range) {
  for (auto it = first_granule(range.begin); it != granules_.end() && it->first < range.end; ++it) {
    if (it->second.blocks++ > 0) continue;
    idle_.erase(it->first);
    use_.idle_bytes -= it->second.granule.bytes;
  }
}

void MemoryPool::let_go(Range range) {
  for (auto it = first_granule(range.begin); it != granules_.end() && it->first < range.end; ++it) {
    if (--it->second.blocks > 0) continue;
    idle_.insert(it->first);
    use_.idle_bytes += it->second.granule.bytes;
  }
}

// Maps what is missing under a block, for that block. False when the device is full; what was mapped until
// then stays.
bool MemoryPool::fill(Range range) {
  for (const Range& gap : gaps(range)) {
    const auto granules = gather(gap.bytes());
    if (!granules.has_value()) return false;
    try {
      memory_.map(gap.begin, *granules);
    } catch (...) {
      for (const Granule& granule : *granules) memory_.destroy(granule);
      throw;
    }
    uint64_t address = gap.begin;
    for (const Granule& granule : *granules) {
      granules_.emplace(address, Mapped{granule, 1});
      use_.mapped_bytes += granule.bytes;
      address += static_cast<uint64_t>(granule.bytes);
    }
  }
  return true;
}

// Granules of that size together, idle ones first. None when the device is full.
std::optional<std::vector<Granule>> MemoryPool::gather(int64_t bytes) {
  std::vector<Granule> granules;
  const bool may_move = !idle_.empty() && memory_.wait();
  for (int64_t left = bytes; left > 0; left -= granules.back().bytes) {
    const int64_t size = left >= options_.large_granule_bytes ? options_.large_granule_bytes : granularity_;
    std::optional<Granule> granule = may_move ? take_idle(size) : std::nullopt;
    if (!granule.has_value()) granule = create(size);
    if (!granule.has_value()) {
      for (const Granule& gathered : granules) memory_.destroy(gathered);
      return std::nullopt;
    }
    granules.push_back(*granule);
  }
  return granules;
}

std::optional<Granule> MemoryPool::take_idle(int64_t bytes) {
  const auto found = std::find_if(idle_.rbegin(), idle_.rend(), [&](uint64_t address) {
    return granules_.at(address).granule.bytes == bytes;
  });
  if (found == idle_.rend()) return std::nullopt;
  return unmap(*found);
}

std::optional<Granule> MemoryPool::create(int64_t bytes) {
  std::optional<Granule> granule = memory_.create(bytes);
  if (!granule.has_value() && give_back(0)) granule = memory_.create(bytes);
  return granule;
}

Granule MemoryPool::unmap(uint64_t address) {
  const auto found = granules_.find(address);
  const Granule granule = found->second.granule;
  memory_.unmap(address, granule.bytes);
  granules_.erase(found);
  idle_.erase(address);
  use_.mapped_bytes -= granule.bytes;
  use_.idle_bytes -= granule.bytes;
  return granule;
}

// Gives idle granules back to the device until so many bytes are left; the rear ones, so that what is kept
// lies together. Returns whether there were any.
bool MemoryPool::give_back(int64_t kept_bytes) {
  if (use_.idle_bytes <= kept_bytes || !memory_.wait()) return false;
  while (use_.idle_bytes > kept_bytes) memory_.destroy(unmap(*idle_.rbegin()));
  return true;
}

void MemoryPool::add_free(Range range) {
  auto next = free_.lower_bound(range.begin);
  if (next != free_.end() && next->first == range.end) {
    range.end = next->second;
    next = free_.erase(next);
  }
  if (next != free_.begin() && std::prev(next)->second == range.begin) {
    std::prev(next)->second = range.end;
  } else {
    free_.emplace(range.begin, range.end);
  }
}

}  // namespace tessera::cuda
