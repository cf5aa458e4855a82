// A dense row-major tensor in host memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tessera/base/data_type.h"
#include "tessera/base/shape.h"

namespace tessera {

// Of the memory of tensors, and of all that kernels are given, in bytes.
inline constexpr int64_t kMemoryAlignment = 64;

// Bytes of a tensor: elements narrower than a byte are packed. Throws as tensor_bytes() of an extent and the
// bytes of an element does.
int64_t tensor_bytes(DataType type, const Shape& shape);

// Elements of less than 8 bits lie packed, the first in the lowest bits of a byte, the last byte filled up
// with zeros; those of complex types as real and imaginary part. Copies share the memory; clone() makes an
// independent tensor.
class Tensor {
 public:
  Tensor() = default;

  // Zero-filled. Throws Error(out_of_memory) with the size asked for, Error(invalid_argument) on a negative
  // extent.
  Tensor(DataType type, Shape shape);

  // Wraps memory that the caller keeps alive; bytes must be at least the tensor's size.
  static Tensor view(DataType type, Shape shape, void* memory);

  // Memory that the tensor and its copies keep alive, and that may do something as it goes, such as going
  // back to a pool.
  static Tensor share(DataType type, Shape shape, std::shared_ptr<void> memory);

  // A tensor of the storage type of T. Throws unless values has as many elements as shape.
  template <typename T>
  static Tensor from(Shape shape, const std::vector<T>& values);

  // Every element of the given type set to `value`, rounded to the type.
  static Tensor full(DataType type, Shape shape, double value);
  static Tensor scalar(DataType type, double value) { return full(type, {}, value); }

  DataType data_type() const { return type_; }
  const Shape& shape() const { return shape_; }
  int64_t size() const { return element_count(shape_); }  // elements
  size_t bytes() const { return static_cast<size_t>(bytes_of(type_, size())); }
  bool defined() const { return memory_ != nullptr; }

  void* raw() { return memory_.get(); }
  const void* raw() const { return memory_.get(); }
  const std::shared_ptr<void>& owner() const { return memory_; }

  // Typed access. Throws Error(invalid_argument) if T is not the storage type.
  template <typename T>
  std::span<T> data() {
    check_type(DataTypeOf<T>::value);
    return {static_cast<T*>(raw()), static_cast<size_t>(size())};
  }
  template <typename T>
  std::span<const T> data() const {
    check_type(DataTypeOf<T>::value);
    return {static_cast<const T*>(raw()), static_cast<size_t>(size())};
  }

  // Any element as double (64-bit integers beyond 2^53 round), and back with rounding and, for integers,
  // truncation and saturation; what a floating type cannot hold becomes infinity or NaN. See elements.h.
  double at(int64_t index) const;
  void set(int64_t index, double value);
  std::vector<double> to_doubles() const;
  static Tensor from_doubles(DataType type, Shape shape, std::span<const double> values);

  Tensor clone() const;
  // As the operator `cast`: what 8-bit floating types and integers cannot hold becomes what is nearest, or,
  // without saturation, infinity or NaN, and of an integer the lowest bits.
  Tensor cast(DataType type, bool saturate = true) const;
  // Real and imaginary parts along one more axis, in the same memory. Throws Error(invalid_argument) unless
  // the type is complex.
  Tensor parts() const;
  // The same memory under another shape of equal element count.
  Tensor reshape(Shape shape) const;
  // Same type, shape and bits.
  bool identical(const Tensor& other) const;

 private:
  void check_type(DataType wanted) const;
  static void check_value_count(const Shape& shape, size_t count);

  DataType type_ = DataType::fp32;
  Shape shape_;
  std::shared_ptr<void> memory_;
};

template <typename T>
Tensor Tensor::from(Shape shape, const std::vector<T>& values) {
  Tensor result(DataTypeOf<T>::value, std::move(shape));
  auto target = result.data<T>();
  check_value_count(result.shape(), values.size());
  for (size_t i = 0; i < target.size(); ++i) target[i] = values[i];
  return result;
}

}  // namespace tessera
