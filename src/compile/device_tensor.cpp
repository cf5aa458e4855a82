#include "tessera/compile/device_tensor.h"

#include "tessera/base/error.h"

namespace tessera {

DeviceTensor DeviceTensor::allocate(std::shared_ptr<Device> device, DataType type, Shape shape) {
  std::shared_ptr<void> memory = device->allocate(tensor_bytes(type, shape));
  return wrap(std::move(device), type, std::move(shape), std::move(memory));
}

DeviceTensor DeviceTensor::wrap(std::shared_ptr<Device> device, DataType type, Shape shape,
                                std::shared_ptr<void> memory, std::shared_ptr<Event> ready) {
  require(reinterpret_cast<uintptr_t>(memory.get()) % kMemoryAlignment == 0, ErrorCode::invalid_argument,
          "memory at {} is not aligned to {} bytes", memory.get(), kMemoryAlignment);
  DeviceTensor tensor;
  tensor.device_ = std::move(device);
  tensor.type_ = type;
  tensor.shape_ = std::move(shape);
  tensor.memory_ = std::move(memory);
  tensor.ready_ = std::move(ready);
  return tensor;
}

DeviceTensor DeviceTensor::from_host(std::shared_ptr<Device> device, const Tensor& tensor) {
  const auto* begin = static_cast<const std::byte*>(tensor.raw());
  const bool is_aligned = reinterpret_cast<uintptr_t>(begin) % kMemoryAlignment == 0;
  if (device->host_accessible() && is_aligned)
    return wrap(std::move(device), tensor.data_type(), tensor.shape(), tensor.owner());
  DeviceTensor result = allocate(std::move(device), tensor.data_type(), tensor.shape());
  result.device_->copy_from_host(result.memory(), tensor.raw(), static_cast<int64_t>(tensor.bytes()));
  return result;
}

int64_t DeviceTensor::bytes() const {
  return tensor_bytes(type_, shape_);
}

Tensor DeviceTensor::to_host() const {
  require(defined(), ErrorCode::invalid_argument, "there is no tensor to copy to the host");
  if (ready_ != nullptr) ready_->wait();
  if (device_->host_accessible()) return Tensor::share(type_, shape_, memory_);
  Tensor result(type_, shape_);
  device_->copy_to_host(result.raw(), memory_.get(), bytes());
  return result;
}

Feeds RunFeeds::on_host() const {
  Feeds all = host;
  for (const auto& [name, tensor] : there) all.emplace(name, tensor.to_host());
  return all;
}

}  // namespace tessera
