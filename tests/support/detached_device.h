// The reference's loops with the interface of a device that works beside the host: its memory is its own,
// inputs come through buffers and outputs go through buffers. Runs still take place as they are submitted.
#pragma once

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

  int waits = 0;    // for all of a queue's work
  int buffers = 0;  // made so far
  int events = 0;   // of one queue, that another one was to wait for

 private:
  class Queue : public HostQueue {
   public:
    explicit Queue(DetachedDevice& device) : device_(device) {}
    void synchronize() override { ++device_.waits; }
    void wait_for(const Event&) override { ++device_.events; }
    std::unique_ptr<InputBuffer> input_buffer(int64_t bytes) override {
      ++device_.buffers;
      return std::make_unique<Input>(bytes);
    }
    std::unique_ptr<OutputBuffer> output_buffer(int64_t bytes) override {
      ++device_.buffers;
      return std::make_unique<Output>(bytes);
    }

   private:
    DetachedDevice& device_;
  };

  class Input : public InputBuffer {
   public:
    explicit Input(int64_t bytes) : present_(static_cast<size_t>(bytes)), next_(present_) {}
    const void* memory() const override { return present_.data(); }
    void load(const std::shared_ptr<void>& host) override {
      std::memcpy(next_.data(), host.get(), next_.size());
    }
    void show() override { std::memcpy(present_.data(), next_.data(), next_.size()); }

   private:
    std::vector<char> present_;
    std::vector<char> next_;
  };

  class Output : public OutputBuffer {
   public:
    explicit Output(int64_t bytes) : copied_(static_cast<size_t>(bytes)) {}
    void begin(const void* device) override { std::memcpy(copied_.data(), device, copied_.size()); }
    const void* finish() override { return copied_.data(); }

   private:
    std::vector<char> copied_;
  };
};

}  // namespace tessera::testing
