#include "tessera/base/tensor.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "tessera/base/elements.h"
#include "tessera/base/error.h"
#include "tessera/base/rounding.h"
#include "tessera/base/text.h"

namespace tessera {
namespace {

constexpr size_t kAlignment = kMemoryAlignment;

}  // namespace

int64_t tensor_bytes(DataType type, const Shape& shape) {
  if (!is_packed(type)) return tensor_bytes(shape, size_of(type));
  tensor_bytes(shape, 1);  // no more elements than bytes may be
  return bytes_of(type, element_count(shape));
}

Tensor::Tensor(DataType type, Shape shape) : type_(type), shape_(std::move(shape)) {
  const auto bytes = static_cast<size_t>(tensor_bytes(type_, shape_));
  const size_t rounded = std::max(round_up(bytes, kAlignment), kAlignment);
  void* memory = std::aligned_alloc(kAlignment, rounded);
  require(memory != nullptr, ErrorCode::out_of_memory, "cannot allocate {} for a tensor {}{}",
          format_bytes(static_cast<double>(bytes)), tessera::to_string(type_), tessera::to_string(shape_));
  std::memset(memory, 0, rounded);
  memory_ = std::shared_ptr<void>(memory, &std::free);
}

Tensor Tensor::share(DataType type, Shape shape, std::shared_ptr<void> memory) {
  tensor_bytes(type, shape);
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
  double value = 0;
  load_elements(type_, raw(), index, {&value, 1});
  return value;
}

void Tensor::set(int64_t index, double value) {
  store_elements(type_, raw(), index, {&value, 1}, /*saturate=*/false);
}

std::vector<double> Tensor::to_doubles() const {
  std::vector<double> values(static_cast<size_t>(size()));
  load_elements(type_, raw(), 0, values);
  return values;
}

Tensor Tensor::from_doubles(DataType type, Shape shape, std::span<const double> values) {
  Tensor result(type, std::move(shape));
  check_value_count(result.shape(), values.size());
  store_elements(type, result.raw(), 0, values, /*saturate=*/false);
  return result;
}

Tensor Tensor::clone() const {
  if (!defined()) return {};
  Tensor result(type_, shape_);
  std::memcpy(result.raw(), raw(), bytes());
  return result;
}

Tensor Tensor::cast(DataType type, bool saturate) const {
  if (type == type_) return clone();
  Tensor result(type, shape_);
  cast_elements(type_, raw(), type, result.raw(), size(), saturate);
  return result;
}

Tensor Tensor::parts() const {
  require(is_complex(type_), ErrorCode::invalid_argument, "{} has no parts", tessera::to_string(type_));
  Tensor result = *this;
  result.type_ = type_ == DataType::complex64 ? DataType::fp32 : DataType::fp64;
  result.shape_.push_back(2);
  return result;
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
