#include "tessera/data/device_rows.h"

namespace tessera::data {

DeviceRows::DeviceRows(std::shared_ptr<const BatchMemory> memory, DataType type, const Shape& shape)
    : memory_(std::move(memory)),
      type_(type),
      shape_(shape),
      row_bytes_(static_cast<size_t>(tensor_bytes(type, shape) / shape.at(0))),
      block_(memory_->block(tensor_bytes(type, shape))),
      from_host_(static_cast<size_t>(shape[0]), false) {}

std::byte* DeviceRows::there(size_t row) const {
  return static_cast<std::byte*>(block_->memory()) + row * row_bytes_;
}

std::span<std::byte> DeviceRows::on_host(size_t row) {
  if (!host_.has_value()) host_ = memory_->tensor(type_, shape_);
  from_host_.at(row) = true;
  return {static_cast<std::byte*>(host_->raw()) + row * row_bytes_, row_bytes_};
}

std::span<std::byte> DeviceRows::read_back(size_t row) {
  if (block_->written() != nullptr) block_->written()->wait();
  const std::span<std::byte> target = on_host(row);
  device().copy_to_host(target.data(), there(row), static_cast<int64_t>(row_bytes_));
  return target;
}

// Rows that follow each other in one copy.
DeviceTensor DeviceRows::finish() {
  for (size_t first = 0, end = 0; first < from_host_.size(); first = end + 1) {
    end = first;
    while (end < from_host_.size() && from_host_[end]) ++end;
    if (end == first) continue;
    device().copy_from_host(there(first), static_cast<const std::byte*>(host_->raw()) + first * row_bytes_,
                            static_cast<int64_t>((end - first) * row_bytes_));
  }
  host_.reset();
  return DeviceTensor::wrap(memory_->device(), type_, shape_, {block_, block_->memory()}, block_->written());
}

}  // namespace tessera::data
