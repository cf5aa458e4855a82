// What the values of a module are while it runs.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "tessera/base/tensor.h"
#include "tessera/compile/device_tensor.h"
#include "tessera/graph/tensor_type.h"

namespace tessera::program {

// A tensor of texts: they stay on the host, and no graph holds them.
struct TextTensor {
  Shape shape;
  std::vector<std::string> values;  // row-major
  bool operator==(const TextTensor&) const = default;
};

// A tensor that an island left where it runs. A host that reads it copies it, once.
class DeviceValue {
 public:
  explicit DeviceValue(DeviceTensor tensor) : there_(std::move(tensor)) {}

  const DeviceTensor& there() const { return there_; }
  const Tensor& here() const;

 private:
  DeviceTensor there_;
  mutable std::optional<Tensor> here_;
};

// A tensor, texts, a sequence of items, or nothing: an operand left out and an empty optional are the same.
// Copies share tensors and sequences.
class Item {
 public:
  using Sequence = std::vector<Item>;

  Item() = default;
  // Implicit, because an item is whichever of these a rule has at hand.
  Item(Tensor tensor) : value_(std::move(tensor)) {}  // NOLINT(google-explicit-constructor)
  Item(DeviceTensor tensor)                           // NOLINT(google-explicit-constructor)
      : value_(std::make_shared<const DeviceValue>(std::move(tensor))) {}
  Item(TextTensor text)  // NOLINT(google-explicit-constructor)
      : value_(std::make_shared<const TextTensor>(std::move(text))) {}
  Item(Sequence items)  // NOLINT(google-explicit-constructor)
      : value_(std::make_shared<const Sequence>(std::move(items))) {}

  bool absent() const { return std::holds_alternative<std::monostate>(value_); }
  // Null where it is something else. Of a tensor on a device a copy on the host, which it keeps.
  const Tensor* tensor() const;
  // Null where it is not on a device.
  const DeviceTensor* device_tensor() const;
  // Of a tensor, wherever it is.
  std::optional<TensorType> tensor_type() const;
  const TextTensor* text() const;
  const Sequence* sequence() const;

 private:
  std::variant<std::monostate, Tensor, std::shared_ptr<const DeviceValue>, std::shared_ptr<const TextTensor>,
               std::shared_ptr<const Sequence>>
      value_;
};

// The same without tensors on devices.
Item on_host(const Item& item);

// "fp32[2, 3]", "text[4]", "sequence of 3", "nothing".
std::string to_string(const Item& item);

}  // namespace tessera::program
