#include "distribute/local.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "tessera/base/error.h"
#include "tessera/base/progress.h"
#include "tessera/distribute/part_cursor.h"
#include "tessera/distribute/reduction.h"

namespace tessera::distribute {
namespace {

constexpr int64_t kSliceNanoseconds = 20'000'000;  // of waiting, between looks at the other ranks
constexpr int kSpins = 4000;                       // while each rank may have a processor
constexpr int kCrowdedSpins = 50;

void pause_processor() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#endif
}

std::vector<int64_t> all_members(int64_t ranks) {
  std::vector<int64_t> members;
  for (int64_t rank = 0; rank < ranks; ++rank) members.push_back(rank);
  return members;
}

}  // namespace

LocalCommunicator::LocalCommunicator(std::shared_ptr<RankWatch> watch)
    : LocalCommunicator(watch, watch->memory(), watch->rank(), all_members(watch->memory().ranks)) {}

LocalCommunicator::LocalCommunicator(std::shared_ptr<RankWatch> watch, GroupMemory memory, int64_t rank,
                                     std::vector<int64_t> members)
    : watch_(std::move(watch)),
      memory_(std::move(memory)),
      rank_(rank),
      members_(std::move(members)),
      spins_(std::thread::hardware_concurrency() >= watch_->memory().ranks ? kSpins : kCrowdedSpins) {}

void LocalCommunicator::begin(const Call& call) {
  call_ = call;
  call_.number = calls_++;
  note_progress();
}

void LocalCommunicator::stop(const std::string& reason) {
  abort(reason);
  fail(ErrorCode::rank_failure, "{}", abort_reason(watch_->memory().header()));
}

// All ranks end, also those of other groups: they would wait for this one.
void LocalCommunicator::abort(const std::string& reason) noexcept {
  abort_group(watch_->memory().header(), reason);
}

void LocalCommunicator::check() {
  if (watch_->memory().header().aborted.load(std::memory_order_acquire) != 0) stop("");
  for (const int64_t member : members_) {
    if (watch_->has_left(member)) continue;
    const std::string complaint = watch_->complaint(member);
    if (!complaint.empty() && !watch_->has_left(member)) stop(complaint);
  }
}

void LocalCommunicator::check_alive() {
  GroupHeader& all = watch_->memory().header();
  if (all.aborted.load(std::memory_order_acquire) != 0) stop("");
  const uint64_t own =
      memory_.header().entries[static_cast<size_t>(rank_)].arrivals.load(std::memory_order_relaxed);
  for (int64_t member = 0; member < memory_.ranks; ++member) {
    const RankEntry& entry = memory_.header().entries[static_cast<size_t>(member)];
    if (entry.arrivals.load(std::memory_order_acquire) >= own) continue;
    const std::string complaint = watch_->complaint(members_[static_cast<size_t>(member)]);
    if (!complaint.empty()) stop(complaint);
  }
}

void LocalCommunicator::wait_for_generation(uint32_t generation) {
  GroupHeader& header = memory_.header();
  for (int spin = 0; spin < spins_; ++spin) {
    if (header.generation.load(std::memory_order_acquire) != generation) return;
    pause_processor();
  }
  while (header.generation.load(std::memory_order_acquire) == generation) {
    futex_wait(header.generation, generation, kSliceNanoseconds);
    if (header.generation.load(std::memory_order_acquire) != generation) return;
    // Waiting is a sign of life: it is another rank that does not come.
    note_progress();
    check_alive();
  }
}

void LocalCommunicator::arrive_and_wait() {
  GroupHeader& header = memory_.header();
  if (watch_->memory().header().aborted.load(std::memory_order_acquire) != 0) stop("");
  const uint32_t generation = header.generation.load(std::memory_order_acquire);
  header.entries[static_cast<size_t>(rank_)].arrivals.fetch_add(1, std::memory_order_acq_rel);
  if (header.arrived.fetch_add(1, std::memory_order_acq_rel) + 1 < static_cast<uint32_t>(memory_.ranks)) {
    wait_for_generation(generation);
    return;
  }
  header.arrived.store(0, std::memory_order_relaxed);
  header.generation.store(generation + 1, std::memory_order_release);
  futex_wake_all(header.generation);
}

void LocalCommunicator::check_calls(size_t parity) {
  for (int64_t member = 0; member < memory_.ranks; ++member) {
    const Call& other = memory_.header().entries[static_cast<size_t>(member)].calls[parity];
    const std::string problem =
        difference(members_[static_cast<size_t>(rank_)], call_, members_[static_cast<size_t>(member)], other);
    if (!problem.empty()) stop(problem);
  }
}

void LocalCommunicator::meet(size_t parity) {
  memory_.header().entries[static_cast<size_t>(rank_)].calls[parity] = call_;
  arrive_and_wait();
  check_calls(parity);
}

// Each rank reduces its share of the chunk for all. Slots and results of a parity are written again two
// chunks later, after a barrier to which all come only when they have read them.
void LocalCommunicator::reduce_chunk(size_t parity, int64_t elements, DataType type, Reduction reduction) {
  const auto width = static_cast<int64_t>(size_of(type));
  const int64_t begin = elements * rank_ / memory_.ranks * width;
  const int64_t end = elements * (rank_ + 1) / memory_.ranks * width;
  std::vector<const std::byte*> sources;
  for (int64_t member = 0; member < memory_.ranks; ++member)
    sources.push_back(memory_.slot(member, parity) + begin);
  reduce_elements(sources, memory_.result(parity) + begin, (end - begin) / width, type, reduction);
}

void LocalCommunicator::all_reduce(std::span<const ReducedPart> parts, DataType type, Reduction reduction) {
  begin(all_reduce_call(parts, type, reduction));
  const auto width = static_cast<int64_t>(size_of(type));
  int64_t left = call_.count;
  PartCursor from(parts, width);
  PartCursor to(parts, width);
  do {
    const int64_t elements = std::min(left, kSlotBytes / width);
    const size_t parity = next_chunk();
    from.read(elements, memory_.slot(rank_, parity));
    meet(parity);
    reduce_chunk(parity, elements, type, reduction);
    arrive_and_wait();
    to.write(elements, memory_.result(parity));
    left -= elements;
  } while (left > 0);
}

void LocalCommunicator::reduce_scatter(const void* input, void* output, int64_t elements, DataType type,
                                       Reduction reduction) {
  begin(reduce_scatter_call(elements, type, reduction));
  const auto width = static_cast<int64_t>(size_of(type));
  const int64_t most = kSlotBytes / width / memory_.ranks;  // of each part in a slot
  int64_t done = 0;
  do {
    const int64_t count = std::min(elements - done, most);
    const size_t parity = next_chunk();
    for (int64_t part = 0; part < memory_.ranks; ++part)
      copy_bytes(memory_.slot(rank_, parity) + part * count * width,
                 static_cast<const std::byte*>(input) + (part * elements + done) * width, count * width);
    meet(parity);
    std::vector<const std::byte*> sources;
    for (int64_t member = 0; member < memory_.ranks; ++member)
      sources.push_back(memory_.slot(member, parity) + rank_ * count * width);
    reduce_elements(sources, static_cast<std::byte*>(output) + done * width, count, type, reduction);
    done += count;
  } while (done < elements);
}

void LocalCommunicator::all_gather(const void* input, void* output, int64_t bytes) {
  begin(all_gather_call(bytes));
  int64_t done = 0;
  do {
    const int64_t count = std::min(bytes - done, kSlotBytes);
    const size_t parity = next_chunk();
    copy_bytes(memory_.slot(rank_, parity), static_cast<const std::byte*>(input) + done, count);
    meet(parity);
    for (int64_t member = 0; member < memory_.ranks; ++member)
      copy_bytes(static_cast<std::byte*>(output) + member * bytes + done, memory_.slot(member, parity),
                 count);
    done += count;
  } while (done < bytes);
}

void LocalCommunicator::broadcast(const void* input, void* output, int64_t bytes, int64_t root) {
  begin(broadcast_call(bytes, root, memory_.ranks));
  int64_t done = 0;
  do {
    const int64_t count = std::min(bytes - done, kSlotBytes);
    const size_t parity = next_chunk();
    if (rank_ == root)
      copy_bytes(memory_.slot(root, parity), static_cast<const std::byte*>(input) + done, count);
    meet(parity);
    copy_bytes(static_cast<std::byte*>(output) + done, memory_.slot(root, parity), count);
    done += count;
  } while (done < bytes);
}

void LocalCommunicator::barrier() {
  begin(barrier_call());
  meet(next_chunk());
}

}  // namespace tessera::distribute
