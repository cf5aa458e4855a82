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

// Whether places lie in the image, along one of its axes.
Value* is_inside(Value* place, int64_t extent) {
  const double end = static_cast<double>(extent) * kUnit;
  return ops::logical_and(ops::greater_equal(place, ops::zeros_like(place)),
                          ops::less(place, ops::constant_like(place, end)));
}

// The pixels in which places lie, or the outermost ones.
Value* pixel_of(Value* place, int64_t extent) {
  return ops::divide(ops::clip(place, 0, static_cast<double>(extent) * kUnit - 1), kUnit);
}

// The pixels whose middles lie before and after a place, and how far it is on the way from the first.
struct Neighbors {
  Value* before;
  Value* after;
  Value* share;  // fp32
};
Neighbors neighbors_of(Value* place, int64_t extent) {
  // One pixel farther, so that what lies before the first middle is not below zero.
  Value* from_middle = ops::add(ops::clip(place, 0, static_cast<double>(extent) * kUnit - 1), kUnit / 2);
  Value* number = ops::divide(from_middle, kUnit);
  Value* rest = ops::subtract(from_middle, ops::multiply(number, kUnit));
  const auto last = static_cast<double>(extent - 1);
  return {.before = ops::clip(ops::add(number, -1), 0, last),
          .after = ops::clip(number, 0, last),
          .share = ops::divide(ops::cast(rest, DataType::fp32), kUnit)};
}

// The levels of pixels, fp32 [batch, H, W, C].
Value* levels_at(Value* images, Value* row, Value* column) {
  const SymbolicShape& shape = images->shape();
  const int64_t width = shape[2].value();
  Value* first = ops::multiply(ops::iota(images->graph(), {shape[0], 1, 1}, 0, DataType::int32),
                               static_cast<double>(shape[1].value() * width));
  Value* pixel = ops::add(ops::add(first, ops::multiply(row, static_cast<double>(width))), column);
  Value* table = ops::reshape(images, {shape[0] * shape[1] * shape[2], shape[3]});
  return ops::cast(ops::gather(table, pixel), DataType::fp32);
}

Value* blend(Value* from, Value* to, Value* share) {
  SymbolicShape shape = share->shape();
  shape.emplace_back(1);
  return ops::add(from, ops::multiply(ops::subtract(to, from), ops::reshape(share, shape)));
}

Value* bilinear_levels(Value* images, Value* row, Value* column) {
  const Neighbors rows = neighbors_of(row, images->shape()[1].value());
  const Neighbors columns = neighbors_of(column, images->shape()[2].value());
  const auto along_row = [&](Value* own) {
    return blend(levels_at(images, own, columns.before), levels_at(images, own, columns.after),
                 columns.share);
  };
  return ops::round(blend(along_row(rows.before), along_row(rows.after), rows.share));
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

Value* affine_coefficients(const AffineParameters& parameters, const Value* images) {
  const auto radians = [](Value* degrees) { return ops::multiply(degrees, std::numbers::pi / 180); };
  Value* angle = radians(parameters.degrees);
  Value* shear = radians(parameters.shear);
  Value* tangent = ops::divide(ops::sin(shear), ops::cos(shear));
  // The inverse of a turn after a shear, around the middle.
  const auto scaled = [&](Value* x) { return ops::divide(x, parameters.scale); };
  Value* a = scaled(ops::subtract(ops::cos(angle), ops::multiply(ops::sin(angle), tangent)));
  Value* b = scaled(ops::add(ops::multiply(ops::cos(angle), tangent), ops::sin(angle)));
  Value* d = scaled(ops::negate(ops::sin(angle)));
  Value* e = scaled(ops::cos(angle));
  const double x = static_cast<double>(images->shape()[2].value()) / 2;
  const double y = static_cast<double>(images->shape()[1].value()) / 2;
  // From the middle of the first pixel.
  Value* across = ops::subtract(0.5 - x, parameters.right);
  Value* down = ops::subtract(0.5 - y, parameters.down);
  const auto start = [&](Value* along, Value* beside, double middle) {
    return ops::add(ops::add(ops::multiply(along, across), ops::multiply(beside, down)), middle);
  };
  std::vector<Value*> columns;
  for (Value* value : {a, b, start(a, b, x), d, e, start(d, e, y)}) {
    Value* fixed = ops::cast(ops::floor(ops::add(ops::multiply(value, kUnit), 0.5)), DataType::int32);
    columns.push_back(ops::reshape(fixed, {fixed->shape()[0], 1}));
  }
  return ops::concat(columns, 1);
}

Value* warp_images(Value* images, Value* coefficients, WarpFilter filter) {
  const SymbolicShape& shape = images->shape();
  const int64_t height = shape[1].value();
  const int64_t width = shape[2].value();
  require(height <= kLargestWarped && width <= kLargestWarped, ErrorCode::invalid_argument,
          "images of {}x{} pixels, {} a side at most are warped", width, height, kLargestWarped);
  Value* column = places(coefficients, 0, images);
  Value* row = places(coefficients, 3, images);
  Value* levels = filter == WarpFilter::bilinear
                      ? bilinear_levels(images, row, column)
                      : levels_at(images, pixel_of(row, height), pixel_of(column, width));
  Value* inside = ops::logical_and(is_inside(column, width), is_inside(row, height));
  return ops::select(ops::reshape(inside, {shape[0], height, width, 1}), levels, ops::zeros_like(levels));
}

}  // namespace tessera::nn
