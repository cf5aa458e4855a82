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

// Copies share the memory; clone() makes an independent tensor.
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
  size_t bytes() const { return static_cast<size_t>(size()) * size_of(type_); }
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

  // Any element as double (int64 beyond 2^53 rounds), and back with rounding and, for integers, truncation.
  double at(int64_t index) const;
  void set(int64_t index, double value);
  std::vector<double> to_doubles() const;
  static Tensor from_doubles(DataType type, Shape shape, std::span<const double> values);

  Tensor clone() const;
  Tensor cast(DataType type) const;
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
