// Affine warps of images by Pillow's rule (Geometry.c, affine_fixed): places in 65536ths of a pixel, so that
// all devices choose the same pixels.
#include <cmath>
#include <numbers>

#include "tessera/base/error.h"
#include "tessera/nn/image_operations.h"
#include "tessera/ops/functions.h"

namespace tessera::nn {
namespace {

constexpr double kUnit = 65536;
constexpr size_t kCoefficients = 6;

// Whole numbers of the images of a batch, [batch, 1, 1].
Value* coefficient(Value* coefficients, int64_t number) {
  Value* column = ops::slice(coefficients, {0, number}, {ops::kWholeAxis, number + 1});
  return ops::reshape(column, {coefficients->shape()[0], 1, 1});
}

// first + x * along + y * down, [batch, H, W].
Value* places(Value* coefficients, int64_t along, const Value* images) {
  Graph& graph = coefficients->graph();
  Value* x = ops::iota(graph, {1, 1, images->shape()[2]}, 2, DataType::int32);
  Value* y = ops::iota(graph, {1, images->shape()[1], 1}, 1, DataType::int32);
  Value* row =
      ops::add(coefficient(coefficients, along + 2), ops::multiply(y, coefficient(coefficients, along + 1)));
  return ops::add(row, ops::multiply(x, coefficient(coefficients, along)));
}

struct Axis {
  Value* inside;  // whether a place lies in the image
  Value* pixel;   // in which it lies, or the nearest at the border
};
Axis axis_of(Value* place, int64_t extent) {
  const double end = static_cast<double>(extent) * kUnit;
  Value* zero = ops::zeros_like(place);
  Value* inside =
      ops::logical_and(ops::greater_equal(place, zero), ops::less(place, ops::constant_like(place, end)));
  return {inside, ops::divide(ops::clip(place, 0, end - 1), kUnit)};
}

}  // namespace

AffineMatrix sheared_across(double shear) {
  return {1, shear, 0, 0, 1, 0};
}

AffineMatrix sheared_down(double shear) {
  return {1, 0, 0, shear, 1, 0};
}

AffineMatrix translated(double right, double down) {
  return {1, 0, -right, 0, 1, -down};
}

AffineMatrix rotated(double degrees, int64_t height, int64_t width) {
  const double angle = degrees * std::numbers::pi / 180;
  const double x = static_cast<double>(width) / 2;
  const double y = static_cast<double>(height) / 2;
  const double c = std::cos(angle);
  const double s = std::sin(angle);
  return {c, -s, x - c * x + s * y, s, c, y - s * x - c * y};
}

Tensor affine_table(const std::vector<AffineMatrix>& matrices) {
  std::vector<int32_t> table;
  for (const AffineMatrix& matrix : matrices) {
    const auto fixed = [&](double value) {
      // The farthest place is the sum of three of them, each at most a third of what 32 bits hold.
      require(std::abs(value) * kUnit < 0x1p31 / 3, ErrorCode::invalid_argument,
              "an affine coefficient of {} is too large", value);
      table.push_back(static_cast<int32_t>(std::floor(value * kUnit + 0.5)));
    };
    for (size_t row = 0; row < kCoefficients; row += 3) {
      require(std::abs(matrix[row]) + std::abs(matrix[row + 1]) < 1.5, ErrorCode::invalid_argument,
              "an affine map that shrinks by {} and {}, expected at most one and a half together",
              matrix[row], matrix[row + 1]);
      fixed(matrix[row]);
      fixed(matrix[row + 1]);
      fixed(matrix[row + 2] + (matrix[row] + matrix[row + 1]) / 2);
    }
  }
  return Tensor::from<int32_t>({std::ssize(matrices), kCoefficients}, table);
}

Value* warp_images(Value* images, Value* coefficients) {
  const int64_t batch = images->shape()[0].value();
  const int64_t height = images->shape()[1].value();
  const int64_t width = images->shape()[2].value();
  require(height <= kLargestWarped && width <= kLargestWarped, ErrorCode::invalid_argument,
          "images of {}x{} pixels, {} a side at most are warped", width, height, kLargestWarped);
  const Axis column = axis_of(places(coefficients, 0, images), width);
  const Axis row = axis_of(places(coefficients, 3, images), height);
  Value* first = ops::multiply(ops::iota(images->graph(), {batch, 1, 1}, 0, DataType::int32),
                               static_cast<double>(height * width));
  Value* pixel =
      ops::add(ops::add(first, ops::multiply(row.pixel, static_cast<double>(width))), column.pixel);
  Value* table = ops::reshape(images, {batch * height * width, images->shape()[3]});
  Value* found = ops::cast(ops::gather(table, pixel), DataType::fp32);
  Value* inside = ops::reshape(ops::logical_and(column.inside, row.inside), {batch, height, width, 1});
  return ops::select(inside, found, ops::zeros_like(found));
}

}  // namespace tessera::nn
