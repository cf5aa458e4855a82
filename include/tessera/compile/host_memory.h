// Base of the devices that work in host memory.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "tessera/base/error.h"
#include "tessera/base/rounding.h"
#include "tessera/base/text.h"
#include "tessera/compile/device.h"

namespace tessera {

class HostEvent : public Event {
 public:
  void wait() const override {}
};

// All is done at once.
class HostQueue : public Queue {
 public:
  void copy(void* target, const void* source, int64_t bytes) override {
    if (bytes > 0) std::memcpy(target, source, static_cast<size_t>(bytes));
  }
  void fill(void* device, int byte, int64_t bytes) override {
    if (bytes > 0) std::memset(device, byte, static_cast<size_t>(bytes));
  }
  void copy_from_host(void* device, const void* host, int64_t bytes) override { copy(device, host, bytes); }
  void copy_to_host(void* host, const void* device, int64_t bytes) override { copy(host, device, bytes); }
  std::shared_ptr<Event> mark() override { return std::make_shared<HostEvent>(); }
  void wait_for(const Event& event) override { event.wait(); }
  void synchronize() override {}
};

class HostMemoryDevice : public Device {
 public:
  std::shared_ptr<void> allocate(int64_t bytes) override {
    constexpr size_t kAlignment = kMemoryAlignment;
    const size_t rounded = round_up(static_cast<size_t>(bytes), kAlignment);
    void* memory = std::aligned_alloc(kAlignment, std::max(rounded, kAlignment));
    require(memory != nullptr, ErrorCode::out_of_memory, "cannot allocate {} of host memory",
            format_bytes(static_cast<double>(bytes)));
    std::memset(memory, 0, rounded);
    return {memory, &std::free};
  }
  std::shared_ptr<void> allocate_pinned(int64_t bytes) override { return allocate(bytes); }
  void copy_from_host(void* device, const void* host, int64_t bytes) override {
    HostQueue().copy_from_host(device, host, bytes);
  }
  void copy_to_host(void* host, const void* device, int64_t bytes) override {
    HostQueue().copy_to_host(host, device, bytes);
  }
  std::shared_ptr<Queue> queue() override { return std::make_shared<HostQueue>(); }
};

}  // namespace tessera
