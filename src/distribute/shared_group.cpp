#include "distribute/shared_group.h"

#include <algorithm>
#include <climits>
#include <cstring>
#include <ctime>

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace tessera::distribute {
namespace {

constexpr int64_t kSecond = 1'000'000'000;

int64_t header_bytes() {
  return (static_cast<int64_t>(sizeof(GroupHeader)) + 4095) / 4096 * 4096;
}

}  // namespace

GroupMemory::GroupMemory(std::shared_ptr<void> shared, int64_t count)
    : memory(std::move(shared)), ranks(count) {}

int64_t GroupMemory::bytes(int64_t ranks) {
  return header_bytes() + 2 * (ranks + 1) * kSlotBytes;
}

std::byte* GroupMemory::slot(int64_t rank, size_t parity) const {
  return static_cast<std::byte*>(memory.get()) + header_bytes() +
         (2 * rank + static_cast<int64_t>(parity)) * kSlotBytes;
}

void futex_wait(const std::atomic<uint32_t>& word, uint32_t value, int64_t nanoseconds) {
  const timespec time{nanoseconds / kSecond, nanoseconds % kSecond};
  ::syscall(SYS_futex, &word, FUTEX_WAIT, value, &time, nullptr, 0);
}

void futex_wake_all(const std::atomic<uint32_t>& word) {
  ::syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

void abort_group(GroupHeader& header, const std::string& reason) noexcept {
  uint32_t none = 0;
  if (!header.aborted.compare_exchange_strong(none, 1)) return;
  const size_t length = std::min(reason.size(), header.reason.size() - 1);
  std::memcpy(header.reason.data(), reason.data(), length);
  header.reason[length] = '\0';
  header.aborted.store(2, std::memory_order_release);
  futex_wake_all(header.generation);
}

std::string abort_reason(const GroupHeader& header) {
  const uint32_t state = header.aborted.load(std::memory_order_acquire);
  if (state == 0) return "";
  // Whoever is writing may have died meanwhile.
  return state == 2 ? header.reason.data() : "another rank stopped all";
}

}  // namespace tessera::distribute
