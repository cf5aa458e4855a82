// The field of a batch that lies in the memory of the device that the batch is for.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "tessera/compile/batch_memory.h"
#include "tessera/compile/device_tensor.h"

namespace tessera::data {

// Its rows are written by the device itself, or by the host into rows of its own that finish() brings there.
// One thread at a time uses it. It may go at any time: its memory serves others when the device has done what
// it was given.
class DeviceRows {
 public:
  // `shape`: of the field, whose first extent counts the rows. Throws Error(out_of_memory).
  DeviceRows(std::shared_ptr<const BatchMemory> memory, DataType type, const Shape& shape);

  Device& device() const { return *memory_->device(); }
  // A row on the device.
  std::byte* there(size_t row) const;
  // When what the device was given to write is there; null: it is.
  void written_after(std::shared_ptr<Event> event) { block_->written_after(std::move(event)); }

  // A row of the host, with undefined contents, that takes the place of what lies there.
  std::span<std::byte> on_host(size_t row);
  // The same with the contents of what lies there, which is waited for.
  std::span<std::byte> read_back(size_t row);

  // The whole field: the host's rows lie there when it returns, others after DeviceTensor::ready().
  DeviceTensor finish();

 private:
  std::shared_ptr<const BatchMemory> memory_;
  DataType type_;
  Shape shape_;
  size_t row_bytes_;
  std::shared_ptr<DeviceBlock> block_;
  std::optional<Tensor> host_;   // from the first row on that is the host's
  std::vector<bool> from_host_;  // by row
};

}  // namespace tessera::data
