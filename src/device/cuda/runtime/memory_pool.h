// The pool of the GPU's blocks: wide ranges of addresses, and granules of memory that are mapped where
// blocks need them. Grows without copying, for a block that finds no room among its neighbors gets other
// addresses, to which idle granules are moved; so memory does not fragment.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <vector>

namespace tessera::cuda {

struct Granule {
  uint64_t handle = 0;
  int64_t bytes = 0;
};

// What the pool asks of a driver. Sizes are in bytes; they and the addresses are multiples of the
// granularity.
class VirtualMemory {
 public:
  virtual ~VirtualMemory() = default;
  virtual int64_t granularity() const = 0;
  // Addresses without memory. Throws Error when there are none left.
  virtual uint64_t reserve(int64_t bytes) = 0;
  virtual void release(uint64_t address, int64_t bytes) = 0;
  // Memory that has no address yet; none when the device has not as much.
  virtual std::optional<Granule> create(int64_t bytes) = 0;
  virtual void destroy(const Granule& granule) = 0;
  // Puts the granules at the address, one after the other. Throws Error, and then nothing is mapped.
  virtual void map(uint64_t address, const std::vector<Granule>& granules) = 0;
  virtual void unmap(uint64_t address, int64_t bytes) = 0;
  // Waits for all work given to the device. False when that cannot be waited for now, as when a run is being
  // recorded.
  virtual bool wait() = 0;
};

struct MemoryPoolOptions {
  int64_t range_bytes = 0;       // addresses that are reserved at a time, at least
  int64_t idle_limit_bytes = 0;  // how much idle memory is kept for later blocks
  // Granules of blocks that need so much, a multiple of the smallest, of which what is left of a block is
  // made. Mapping costs mostly by the granule.
  int64_t large_granule_bytes = 0;
};

struct MemoryPoolUse {
  int64_t block_bytes = 0;       // in blocks, rounded up to their alignment
  int64_t peak_block_bytes = 0;  // the most that block_bytes ever was
  int64_t mapped_bytes = 0;      // taken from the device
  int64_t idle_bytes = 0;        // in granules without any block
};

// All functions may be called from any thread. A freed block may be handed out again at once: all work that
// uses it must be done by then. Before memory is moved or given back, the pool waits for the device even so.
class MemoryPool {
 public:
  static constexpr int64_t kAlignment = 512;

  // The memory must outlive the pool.
  MemoryPool(VirtualMemory& memory, const MemoryPoolOptions& options);
  ~MemoryPool();
  MemoryPool(const MemoryPool&) = delete;
  MemoryPool& operator=(const MemoryPool&) = delete;

  // The address of a new block, whatever it held before; none when the device is full, also after all idle
  // granules were given back. Throws Error when the driver fails otherwise.
  std::optional<uint64_t> allocate(int64_t bytes);
  void free(uint64_t address) noexcept;

  MemoryPoolUse use() const;

 private:
  struct Mapped {
    Granule granule;
    int64_t blocks = 0;  // that lie in it, wholly or in part
  };
  struct Range {
    uint64_t begin;
    uint64_t end;
    int64_t bytes() const { return static_cast<int64_t>(end - begin); }
  };

  void reserve(int64_t bytes);
  std::optional<uint64_t> find_place(int64_t bytes) const;
  std::vector<Range> gaps(Range range) const;
  std::map<uint64_t, Mapped>::iterator first_granule(uint64_t address);
  void hold(Range range);
  void let_go(Range range);
  bool fill(Range range);
  std::optional<std::vector<Granule>> gather(int64_t bytes);
  std::optional<Granule> take_idle(int64_t bytes);
  std::optional<Granule> create(int64_t bytes);
  Granule unmap(uint64_t address);
  bool give_back(int64_t kept_bytes);
  void add_free(Range range);

  VirtualMemory& memory_;
  const MemoryPoolOptions options_;
  const int64_t granularity_;

  mutable std::mutex mutex_;             // guards what follows
  std::vector<Range> reserved_;          // each with a granule in front that stays free of blocks
  std::map<uint64_t, uint64_t> free_;    // addresses of no block: begin -> end, no two touch
  std::map<uint64_t, uint64_t> blocks_;  // begin -> end
  std::map<uint64_t, Mapped> granules_;  // by address
  std::set<uint64_t> idle_;              // addresses of granules without blocks
  MemoryPoolUse use_;
};

}  // namespace tessera::cuda
