// A tensor in the memory of a device.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "tessera/base/tensor.h"
#include "tessera/compile/device.h"
#include "tessera/compile/feeds.h"

namespace tessera {

// Dense and row-major. Copies share the memory.
class DeviceTensor {
 public:
  DeviceTensor() = default;
  // Filled with zeros. Throws Error(out_of_memory).
  static DeviceTensor allocate(std::shared_ptr<Device> device, DataType type, Shape shape);
  // Somebody else's memory, which is kept alive; its contents are there after `ready`, or now. Throws
  // Error(invalid_argument) where it is not aligned as kernels need it (kMemoryAlignment).
  static DeviceTensor wrap(std::shared_ptr<Device> device, DataType type, Shape shape,
                           std::shared_ptr<void> memory, std::shared_ptr<Event> ready = nullptr);
  // A copy of a host's tensor; where the device works in the host's memory, the same memory.
  static DeviceTensor from_host(std::shared_ptr<Device> device, const Tensor& tensor);

  bool defined() const { return memory_ != nullptr; }
  DataType data_type() const { return type_; }
  const Shape& shape() const { return shape_; }
  int64_t bytes() const;
  void* memory() const { return memory_.get(); }
  const std::shared_ptr<void>& owner() const { return memory_; }
  const std::shared_ptr<Event>& ready() const { return ready_; }
  Device& device() const { return *device_; }

  // Waits until the contents are there. The same memory where the device works in the host's, else a copy.
  Tensor to_host() const;

 private:
  std::shared_ptr<Device> device_;
  DataType type_ = DataType::fp32;
  Shape shape_;
  std::shared_ptr<void> memory_;
  std::shared_ptr<Event> ready_;
};

// Inputs of a graph by name.
using DeviceFeeds = std::map<std::string, DeviceTensor>;

// What a run is given: inputs of the host, and others that lie on the device.
struct RunFeeds {
  Feeds host = {};
  DeviceFeeds there = {};

  // All of them: those of the device are copied, and waited for.
  Feeds on_host() const;
};

}  // namespace tessera
