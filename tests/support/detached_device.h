// The reference's loops with the interface of a device that works beside the host: its memory is its own,
// inputs come through buffers and outputs go through buffers. Runs still take place as they are submitted.
#pragma once

#include <atomic>
#include <cstring>
#include <memory>
#include <vector>

#include "tessera/compile/host_memory.h"
#include "tessera/compile/reference_kernel.h"

namespace tessera::testing {

class DetachedDevice : public HostMemoryDevice {
 public:
  DeviceDescription description() const override { return {.name = "detached", .versions = {}}; }
  bool host_accessible() const override { return false; }
  std::vector<KernelCandidate> candidates(const Node&) const override { return {reference_candidate()}; }
  std::shared_ptr<tessera::Queue> queue() override { return std::make_shared<Queue>(*this); }
  void copy_to_host(void* host, const void* device, int64_t bytes) override {
    bytes_to_host += bytes;
    HostMemoryDevice::copy_to_host(host, device, bytes);
  }

  // Several threads may copy at a time, a loader's beside the one that runs.
  std::atomic<int> waits = 0;                // for all of a queue's work
  std::atomic<int> buffers = 0;              // made so far
  std::atomic<int> events = 0;               // of one queue, that another one was to wait for
  std::atomic<int64_t> bytes_to_host = 0;    // copied so far
  std::atomic<int64_t> bytes_from_host = 0;  // through input buffers

 private:
  class Queue : public HostQueue {
   public:
    explicit Queue(DetachedDevice& device) : device_(device) {}
    void synchronize() override { ++device_.waits; }
    void wait_for(const Event& event) override {
      ++device_.events;
      event.wait();
    }
    void copy_to_host(void* host, const void* device, int64_t bytes) override {
      device_.copy_to_host(host, device, bytes);
    }
    std::unique_ptr<InputBuffer> input_buffer(int64_t bytes) override {
      ++device_.buffers;
      return std::make_unique<Input>(device_, bytes);
    }
    std::unique_ptr<OutputBuffer> output_buffer(int64_t bytes) override {
      ++device_.buffers;
      return std::make_unique<Output>(device_, bytes);
    }

   private:
    DetachedDevice& device_;
  };

  class Input : public InputBuffer {
   public:
    Input(DetachedDevice& device, int64_t bytes)
        : device_(device), present_(static_cast<size_t>(bytes)), next_(present_) {}
    const void* memory() const override { return present_.data(); }
    void load(const std::shared_ptr<void>& host) override {
      device_.bytes_from_host += static_cast<int64_t>(next_.size());
      std::memcpy(next_.data(), host.get(), next_.size());
    }
    void show() override { std::memcpy(present_.data(), next_.data(), next_.size()); }

   private:
    DetachedDevice& device_;
    std::vector<char> present_;
    std::vector<char> next_;
  };

  class Output : public OutputBuffer {
   public:
    Output(DetachedDevice& device, int64_t bytes) : device_(device), bytes_(bytes) {}
    void begin(const void* memory) override {
      copied_ = device_.allocate(bytes_);
      device_.copy_to_host(copied_.get(), memory, bytes_);
    }
    std::shared_ptr<void> finish() override { return std::move(copied_); }

   private:
    DetachedDevice& device_;
    int64_t bytes_;
    std::shared_ptr<void> copied_;
  };
};

}  // namespace tessera::testing
