// The bookkeeping of the pool on a device that is only pretended, and its blocks on a real one.
#include "device/cuda/runtime/memory_pool.h"

#include <algorithm>
#include <thread>

#include "tessera/base/random.h"

#include "device_cuda/cuda_case.h"
#include "support/expect_error.h"

namespace tessera::testing {
namespace {

using cuda::Granule;
using cuda::MemoryPool;

constexpr int64_t kGranule = int64_t{2} << 20;
constexpr int64_t kLarge = 4 * kGranule;

// Refuses what a driver would refuse: overlapping mappings, unknown granules, unmapping while work runs.
class PretendedMemory : public cuda::VirtualMemory {
 public:
  explicit PretendedMemory(int64_t capacity) : capacity_(capacity) {}
  ~PretendedMemory() override {
    EXPECT_TRUE(granules_.empty());
    EXPECT_TRUE(mapped_.empty());
    EXPECT_TRUE(reserved_.empty());
  }

  int64_t granularity() const override { return kGranule; }
  uint64_t reserve(int64_t bytes) override {
    require(reservable, ErrorCode::out_of_memory, "no addresses");
    EXPECT_EQ(bytes % kGranule, 0);
    const uint64_t begin = next_address_;  // ranges touch
    next_address_ += static_cast<uint64_t>(bytes);
    reserved_[begin] = bytes;
    return begin;
  }
  void release(uint64_t address, int64_t bytes) override {
    EXPECT_EQ(reserved_.at(address), bytes);
    reserved_.erase(address);
  }
  std::optional<Granule> create(int64_t bytes) override {
    EXPECT_EQ(bytes % kGranule, 0);
    if (taken + bytes > capacity_) return std::nullopt;
    taken += bytes;
    ++created;
    granules_[++last_handle_] = bytes;
    return Granule{last_handle_, bytes};
  }
  void destroy(const Granule& granule) override {
    EXPECT_EQ(granules_.at(granule.handle), granule.bytes);
    granules_.erase(granule.handle);
    taken -= granule.bytes;
  }
  void map(uint64_t address, const std::vector<Granule>& granules) override {
    require(!refuses_to_map, ErrorCode::unsupported, "cannot map");
    for (const Granule& granule : granules) {
      EXPECT_TRUE(granules_.contains(granule.handle));
      EXPECT_FALSE(touches(address, granule.bytes));
      mapped_[address] = granule;
      address += static_cast<uint64_t>(granule.bytes);
    }
  }
  void unmap(uint64_t address, int64_t bytes) override {
    EXPECT_FALSE(working);
    EXPECT_EQ(mapped_.at(address).bytes, bytes);
    mapped_.erase(address);
  }
  bool wait() override {
    if (recording) return false;
    working = false;
    return true;
  }

  bool backs(uint64_t address, int64_t bytes) const {
    const uint64_t end = address + static_cast<uint64_t>(bytes);
    while (address < end) {
      auto next = mapped_.upper_bound(address);
      if (next == mapped_.begin()) return false;
      --next;
      const uint64_t reached = next->first + static_cast<uint64_t>(next->second.bytes);
      if (reached <= address) return false;
      address = reached;
    }
    const auto range = std::prev(reserved_.upper_bound(end - 1));
    return end <= range->first + static_cast<uint64_t>(range->second);
  }

  int64_t taken = 0;
  int created = 0;
  bool working = true;  // until waited for
  bool recording = false;
  bool reservable = true;
  bool refuses_to_map = false;

 private:
  bool touches(uint64_t address, int64_t bytes) const {
    return std::any_of(mapped_.begin(), mapped_.end(), [&](const auto& entry) {
      return entry.first < address + static_cast<uint64_t>(bytes) &&
             address < entry.first + static_cast<uint64_t>(entry.second.bytes);
    });
  }

  int64_t capacity_;
  uint64_t next_address_ = uint64_t{1} << 30;
  uint64_t last_handle_ = 0;
  std::map<uint64_t, int64_t> reserved_;
  std::map<uint64_t, int64_t> granules_;
  std::map<uint64_t, Granule> mapped_;
};

cuda::MemoryPoolOptions options(int64_t idle_limit = int64_t{1} << 40) {
  return {.range_bytes = 1024 * kGranule, .idle_limit_bytes = idle_limit, .large_granule_bytes = kLarge};
}

// Frees what the test has left, so that PretendedMemory sees that all comes back.
class TestedPool {
 public:
  TestedPool(PretendedMemory& memory, const cuda::MemoryPoolOptions& options) : pool_(memory, options) {}
  ~TestedPool() {
    for (uint64_t block : blocks_) pool_.free(block);
  }
  std::optional<uint64_t> allocate(int64_t bytes) {
    const std::optional<uint64_t> block = pool_.allocate(bytes);
    if (block.has_value()) blocks_.insert(*block);
    return block;
  }
  void free(uint64_t block) {
    pool_.free(block);
    blocks_.erase(block);
  }
  cuda::MemoryPoolUse use() const { return pool_.use(); }

 private:
  MemoryPool pool_;
  std::set<uint64_t> blocks_;
};

TEST(MemoryPool, SmallBlocksShareAGranule) {
  PretendedMemory memory(kGranule);
  TestedPool pool(memory, options());
  std::vector<uint64_t> blocks;
  for (int64_t i = 0; i < 100; ++i) {
    blocks.push_back(pool.allocate(20'000).value());
    EXPECT_EQ(blocks.back() % MemoryPool::kAlignment, 0U);
    EXPECT_TRUE(memory.backs(blocks.back(), 20'000));
  }
  EXPECT_EQ(pool.allocate(0).has_value(), true);
  EXPECT_EQ(memory.created, 1);
  EXPECT_GE(pool.use().block_bytes, 100 * 20'000);
  const int64_t peak = pool.use().block_bytes;
  EXPECT_EQ(pool.use().peak_block_bytes, peak);
  EXPECT_EQ(pool.use().mapped_bytes, kGranule);
  // What is freed in between is filled again.
  pool.free(blocks[40]);
  EXPECT_EQ(pool.allocate(10'000), blocks[40]);
  EXPECT_LT(pool.use().block_bytes, peak);
  EXPECT_EQ(pool.use().peak_block_bytes, peak);
  EXPECT_EQ(pool.allocate(9'000), blocks[40] + 10'240);
}

TEST(MemoryPool, LargeBlocksAreMadeOfFewGranules) {
  PretendedMemory memory(100 * kGranule);
  TestedPool pool(memory, options());
  const uint64_t block = pool.allocate(9 * kGranule + 1).value();
  EXPECT_TRUE(memory.backs(block, 9 * kGranule + 1));
  EXPECT_EQ(memory.created, 2 + 2);  // 2 of 8 MiB, 2 of 2 MiB
  EXPECT_EQ(pool.use().mapped_bytes, 10 * kGranule);
  EXPECT_EQ(pool.use().idle_bytes, 0);
}

TEST(MemoryPool, AFreedBlockServesTheNextWithoutTheDriver) {
  PretendedMemory memory(100 * kGranule);
  TestedPool pool(memory, options());
  const uint64_t block = pool.allocate(8 * kGranule).value();
  pool.free(block);
  EXPECT_EQ(pool.use().idle_bytes, 8 * kGranule);
  EXPECT_EQ(pool.allocate(6 * kGranule), block);
  EXPECT_EQ(memory.created, 2);
  EXPECT_TRUE(memory.working);          // the pool did not wait: the stream orders their work
  EXPECT_EQ(pool.use().idle_bytes, 0);  // the second of 8 MiB is half used
}

TEST(MemoryPool, IdleGranulesMoveToABlockThatIsLarger) {
  PretendedMemory memory(17 * kGranule);
  TestedPool pool(memory, options());
  const uint64_t first = pool.allocate(8 * kGranule).value();
  const uint64_t after = pool.allocate(kGranule).value();
  pool.free(first);
  const uint64_t larger = pool.allocate(12 * kGranule).value();
  EXPECT_GT(larger, after);
  EXPECT_TRUE(memory.backs(larger, 12 * kGranule));
  EXPECT_TRUE(memory.backs(after, kGranule));
  EXPECT_FALSE(memory.backs(first, kGranule));
  EXPECT_EQ(memory.created, 2 + 1 + 1);
  EXPECT_EQ(memory.taken, 13 * kGranule);
  EXPECT_FALSE(memory.working);  // moved only after the device was waited for
}

TEST(MemoryPool, GivesBackWhatIsIdleBeyondTheLimit) {
  PretendedMemory memory(100 * kGranule);
  TestedPool pool(memory, options(2 * kLarge));
  const uint64_t block = pool.allocate(10 * kLarge).value();
  const uint64_t small = pool.allocate(100).value();
  pool.free(block);
  EXPECT_EQ(pool.use().idle_bytes, 2 * kLarge);
  EXPECT_EQ(memory.taken, 2 * kLarge + kGranule);
  // The front is what was kept.
  EXPECT_EQ(pool.allocate(2 * kLarge), block);
  pool.free(small);
  EXPECT_EQ(memory.taken, 2 * kLarge + kGranule);
}

TEST(MemoryPool, NothingIsGivenBackOrMovedWhileARunIsRecorded) {
  PretendedMemory memory(20 * kGranule);
  TestedPool pool(memory, options(0));
  const uint64_t block = pool.allocate(2 * kLarge).value();
  const uint64_t after = pool.allocate(100).value();
  memory.recording = true;
  pool.free(block);
  EXPECT_EQ(pool.use().idle_bytes, 2 * kLarge);
  EXPECT_TRUE(pool.allocate(2 * kLarge + kGranule).has_value());
  EXPECT_EQ(memory.taken, 2 * kLarge + kGranule + 2 * kLarge + kGranule);
  memory.recording = false;
  pool.free(after);
  EXPECT_EQ(pool.use().idle_bytes, 0);
}

TEST(MemoryPool, GivesBackIdleGranulesBeforeItSaysThatTheDeviceIsFull) {
  PretendedMemory memory(8 * kGranule);
  TestedPool pool(memory, options());
  std::vector<uint64_t> small;
  for (int i = 0; i < 8; ++i) small.push_back(pool.allocate(kGranule).value());
  for (uint64_t block : small) pool.free(block);
  const uint64_t keeper = pool.allocate(100).value();
  // The idle ones are of the wrong size, and one is in use.
  EXPECT_TRUE(pool.allocate(kLarge).has_value());
  EXPECT_FALSE(pool.allocate(8 * kGranule).has_value());
  EXPECT_TRUE(memory.backs(keeper, 100));
  EXPECT_TRUE(pool.allocate(kGranule).has_value());
}

TEST(MemoryPool, AFailureLeavesThePoolAsItWas) {
  PretendedMemory memory(10 * kGranule);
  TestedPool pool(memory, options(0));
  const uint64_t block = pool.allocate(100).value();
  const cuda::MemoryPoolUse before = pool.use();
  EXPECT_FALSE(pool.allocate(20 * kGranule).has_value());
  memory.refuses_to_map = true;
  EXPECT_ERROR(pool.allocate(5 * kGranule), ErrorCode::unsupported, "map");
  memory.refuses_to_map = false;
  memory.reservable = false;
  EXPECT_ERROR(pool.allocate(2000 * kGranule), ErrorCode::out_of_memory, "addresses");
  EXPECT_EQ(pool.use().block_bytes, before.block_bytes);
  EXPECT_EQ(pool.use().mapped_bytes, before.mapped_bytes);
  EXPECT_EQ(memory.taken, kGranule);
  pool.free(block);
  pool.free(block + 512);  // no block: ignored
  EXPECT_EQ(memory.taken, 0);
}

TEST(MemoryPool, ReservesMoreAddressesAndKeepsTheRangesApart) {
  PretendedMemory memory(int64_t{1} << 40);
  cuda::MemoryPoolOptions narrow = options();
  narrow.range_bytes = 2 * kGranule;
  TestedPool pool(memory, narrow);
  std::vector<uint64_t> blocks;
  for (int i = 0; i < 4; ++i) blocks.push_back(pool.allocate(2 * kGranule).value());
  for (uint64_t block : blocks) pool.free(block);
  const uint64_t wide = pool.allocate(7 * kGranule).value();
  EXPECT_TRUE(memory.backs(wide, 7 * kGranule));
}

TEST(MemoryPool, BlocksNeverOverlapWhateverTheOrder) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const Random random(seed);
    PretendedMemory memory(200 * kGranule);
    TestedPool pool(memory, options(20 * kGranule));
    std::map<uint64_t, int64_t> blocks;
    uint64_t draw = 0;
    for (int i = 0; i < 500; ++i) {
      memory.working = true;
      memory.recording = random.below(draw++, 10) == 0;
      if (!blocks.empty() && random.below(draw++, 5) < 2) {
        const auto victim = std::next(blocks.begin(), static_cast<long>(random.below(draw++, blocks.size())));
        pool.free(victim->first);
        blocks.erase(victim);
        continue;
      }
      const bool large = random.below(draw++, 3) == 0;
      const auto bytes = static_cast<int64_t>(random.below(draw++, large ? 30 * kGranule : 100'000));
      const std::optional<uint64_t> block = pool.allocate(bytes);
      if (!block.has_value()) continue;
      ASSERT_TRUE(memory.backs(*block, std::max<int64_t>(bytes, 1)));
      const auto next = blocks.lower_bound(*block);
      if (next != blocks.end()) {
        ASSERT_LE(*block + static_cast<uint64_t>(bytes), next->first);
      }
      if (next != blocks.begin()) {
        const auto before = std::prev(next);
        ASSERT_LE(before->first + static_cast<uint64_t>(before->second), *block);
      }
      blocks[*block] = std::max<int64_t>(bytes, 1);
      ASSERT_EQ(pool.use().mapped_bytes, memory.taken);
    }
    memory.recording = false;
    for (const auto& [block, bytes] : blocks) pool.free(block);
    EXPECT_EQ(pool.use().block_bytes, 0);
    EXPECT_EQ(pool.use().idle_bytes, pool.use().mapped_bytes);
    EXPECT_LE(pool.use().idle_bytes, 20 * kGranule);
  }
}

TEST(MemoryPool, ServesSeveralThreads) {
  PretendedMemory memory(int64_t{1} << 30);
  MemoryPool pool(memory, options(10 * kGranule));
  std::vector<std::thread> threads;
  for (int64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&pool, t] {
      for (int64_t i = 1; i < 200; ++i) {
        const uint64_t first = pool.allocate((t + 1) * 50'000 * (i % 40)).value();
        const uint64_t second = pool.allocate(i).value();
        pool.free(first);
        pool.free(second);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(pool.use().block_bytes, 0);
}

// The real driver. Blocks of several sizes are zero when they come, keep what is written, and are reused.
TEST(CudaMemoryPool, GivesZeroedBlocksAndTakesThemBack) {
  TESSERA_NEEDS_GPU();
  cuda::Context context(0);
  // Some virtual machines pass a GPU through without it; plain allocations serve there.
  if (context.pool() == nullptr) GTEST_SKIP() << "no virtual memory on this GPU";
  const int64_t sizes[] = {1, 1000, 3'000'000, 70'000'000, 500'000'000};
  const auto check_zero = [&](const void* block, int64_t bytes) {
    std::vector<char> host(static_cast<size_t>(bytes), 1);
    context.copy_to_host(host.data(), block, bytes);
    EXPECT_TRUE(std::all_of(host.begin(), host.end(), [](char value) { return value == 0; })) << bytes;
  };
  for (int round = 0; round < 3; ++round) {
    std::vector<std::shared_ptr<void>> blocks;
    for (int64_t bytes : sizes) {
      blocks.push_back(context.allocate(bytes));
      check_zero(blocks.back().get(), bytes);
      const std::vector<char> written(static_cast<size_t>(bytes), 7);
      context.copy_from_host(blocks.back().get(), written.data(), bytes);
    }
  }
  EXPECT_EQ(context.pool()->use().block_bytes, 0);
  EXPECT_LE(context.pool()->use().mapped_bytes, 600'000'000);
}

// More than fits the free memory at once, one after the other: each is given back for the next.
TEST(CudaMemoryPool, LargeBlocksFollowEachOther) {
  TESSERA_NEEDS_GPU();
  cuda::Context context(0);
  const int64_t half = context.free_bytes() / 2;
  for (int64_t bytes = half; bytes < half + half / 4; bytes += half / 16) context.allocate(bytes);
  EXPECT_ERROR(context.allocate(3 * half), ErrorCode::out_of_memory, "free", "needed");
  context.allocate(half);
}

}  // namespace
}  // namespace tessera::testing
