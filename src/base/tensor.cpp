#include "tessera/base/tensor.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "tessera/base/error.h"
#include "tessera/base/rounding.h"
#include "tessera/base/text.h"

namespace tessera {
namespace {

constexpr size_t kAlignment = kMemoryAlignment;

size_t checked_bytes(DataType type, const Shape& shape) {
  return static_cast<size_t>(tensor_bytes(shape, size_of(type)));
}

template <typename T>
double load(const void* memory, int64_t index) {
  const T value = static_cast<const T*>(memory)[index];
  if constexpr (std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>) {
    return static_cast<float>(value);
  } else {
    return static_cast<double>(value);
  }
}

template <typename T>
void store(void* memory, int64_t index, double value) {
  T& target = static_cast<T*>(memory)[index];
  if constexpr (std::is_same_v<T, bool>) {
    target = value != 0;
  } else if constexpr (std::is_integral_v<T>) {
    // Saturating, so that every double has a defined result.
    constexpr auto kLow = static_cast<double>(std::numeric_limits<T>::min());
    constexpr auto kHigh = static_cast<double>(std::numeric_limits<T>::max());
    if (std::isnan(value)) {
      target = 0;
    } else if (value <= kLow) {
      target = std::numeric_limits<T>::min();
    } else if (value >= kHigh) {
      target = std::numeric_limits<T>::max();
    } else {
      target = static_cast<T>(value);
    }
  } else if constexpr (std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>) {
    target = T(static_cast<float>(value));
  } else {
    target = static_cast<T>(value);
  }
}

}  // namespace

Tensor::Tensor(DataType type, Shape shape) : type_(type), shape_(std::move(shape)) {
  const size_t bytes = checked_bytes(type_, shape_);
  const size_t rounded = std::max(round_up(bytes, kAlignment), kAlignment);
  void* memory = std::aligned_alloc(kAlignment, rounded);
  require(memory != nullptr, ErrorCode::out_of_memory, "cannot allocate {} for a tensor {}{}",
          format_bytes(static_cast<double>(bytes)), tessera::to_string(type_), tessera::to_string(shape_));
  std::memset(memory, 0, rounded);
  memory_ = std::shared_ptr<void>(memory, &std::free);
}

Tensor Tensor::share(DataType type, Shape shape, std::shared_ptr<void> memory) {
  checked_bytes(type, shape);
  Tensor result;
  result.type_ = type;
  result.shape_ = std::move(shape);
  result.memory_ = std::move(memory);
  return result;
}

Tensor Tensor::view(DataType type, Shape shape, void* memory) {
  return share(type, std::move(shape), {memory, [](void*) {}});
}

Tensor Tensor::full(DataType type, Shape shape, double value) {
  Tensor result(type, std::move(shape));
  for (int64_t i = 0; i < result.size(); ++i) result.set(i, value);
  return result;
}

double Tensor::at(int64_t index) const {
  return dispatch(type_, [&]<typename T>() { return load<T>(raw(), index); });
}

void Tensor::set(int64_t index, double value) {
  dispatch(type_, [&]<typename T>() { store<T>(raw(), index, value); });
}

std::vector<double> Tensor::to_doubles() const {
  std::vector<double> values(static_cast<size_t>(size()));
  dispatch(type_, [&]<typename T>() {
    for (size_t i = 0; i < values.size(); ++i) values[i] = load<T>(raw(), static_cast<int64_t>(i));
  });
  return values;
}

Tensor Tensor::from_doubles(DataType type, Shape shape, std::span<const double> values) {
  Tensor result(type, std::move(shape));
  check_value_count(result.shape(), values.size());
  dispatch(type, [&]<typename T>() {
    for (size_t i = 0; i < values.size(); ++i) store<T>(result.raw(), static_cast<int64_t>(i), values[i]);
  });
  return result;
}

Tensor Tensor::clone() const {
  if (!defined()) return {};
  Tensor result(type_, shape_);
  std::memcpy(result.raw(), raw(), bytes());
  return result;
}

Tensor Tensor::cast(DataType type) const {
  return type == type_ ? clone() : from_doubles(type, shape_, to_doubles());
}

Tensor Tensor::reshape(Shape shape) const {
  require(element_count(shape) == size(), ErrorCode::invalid_argument, "cannot reshape {} to {}",
          tessera::to_string(shape_), tessera::to_string(shape));
  Tensor result = *this;
  result.shape_ = std::move(shape);
  return result;
}

bool Tensor::identical(const Tensor& other) const {
  return type_ == other.type_ && shape_ == other.shape_ && std::memcmp(raw(), other.raw(), bytes()) == 0;
}

void Tensor::check_type(DataType wanted) const {
  require(wanted == type_, ErrorCode::invalid_argument, "tensor holds {}, asked for as {}",
          tessera::to_string(type_), tessera::to_string(wanted));
}

void Tensor::check_value_count(const Shape& shape, size_t count) {
  require(static_cast<size_t>(element_count(shape)) == count, ErrorCode::invalid_argument,
          "shape {} takes {} values, got {}", tessera::to_string(shape), element_count(shape), count);
}

}  // namespace tessera
