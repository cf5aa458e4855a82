// RoiAlign, Det: on the host.
#include <algorithm>
#include <cmath>

#include "onnx/lowering.h"

namespace tessera::onnx {
namespace {

// Four pixels around a point, with their weights; none outside of the image.
struct Corners {
  bool inside = false;
  int64_t top = 0, left = 0, bottom = 0, right = 0;
  double down = 0, across = 0;
};

Corners corners_of(double y, double x, int64_t height, int64_t width) {
  Corners c;
  c.inside = y >= -1 && y <= static_cast<double>(height) && x >= -1 && x <= static_cast<double>(width);
  if (!c.inside) return c;
  y = std::clamp(y, 0.0, static_cast<double>(height - 1));
  x = std::clamp(x, 0.0, static_cast<double>(width - 1));
  c.top = static_cast<int64_t>(y);
  c.left = static_cast<int64_t>(x);
  c.bottom = std::min(c.top + 1, height - 1);
  c.right = std::min(c.left + 1, width - 1);
  c.down = y - static_cast<double>(c.top);
  c.across = x - static_cast<double>(c.left);
  return c;
}

struct Region {
  double top, left, bin_height, bin_width;
  int64_t rows, columns;  // of points in a bin
};

struct Alignment {
  int64_t height, width;  // of the result
  double scale, offset;
  int64_t ratio;
  bool averages;
};

Region region_of(const Tensor& boxes, int64_t row, const Alignment& a) {
  const auto at = [&](int64_t i) { return boxes.at(4 * row + i) * a.scale - a.offset; };
  double height = at(3) - at(1);
  double width = at(2) - at(0);
  if (a.offset == 0) {
    height = std::max(height, 1.0);
    width = std::max(width, 1.0);
  }
  Region r{at(1),   at(0),  height / static_cast<double>(a.height), width / static_cast<double>(a.width),
           a.ratio, a.ratio};
  if (a.ratio <= 0) {
    r.rows = std::max<int64_t>(0, static_cast<int64_t>(std::ceil(r.bin_height)));
    r.columns = std::max<int64_t>(0, static_cast<int64_t>(std::ceil(r.bin_width)));
  }
  return r;
}

// The mean of the points of a bin, or the largest of what its points weigh.
double bin_value(const Tensor& x, int64_t plane, const Region& r, const Alignment& a, int64_t i, int64_t j) {
  const int64_t height = x.shape()[2];
  const int64_t width = x.shape()[3];
  double sum = 0;
  double most = -std::numeric_limits<double>::infinity();
  for (int64_t row = 0; row < r.rows; ++row) {
    for (int64_t column = 0; column < r.columns; ++column) {
      const double y =
          r.top + (static_cast<double>(i) + (static_cast<double>(row) + 0.5) / static_cast<double>(r.rows)) *
                      r.bin_height;
      const double across = r.left + (static_cast<double>(j) +
                                      (static_cast<double>(column) + 0.5) / static_cast<double>(r.columns)) *
                                         r.bin_width;
      const Corners c = corners_of(y, across, height, width);
      const auto pixel = [&](int64_t v, int64_t u) { return x.at((plane * height + v) * width + u); };
      const double weighted[] = {c.inside ? (1 - c.down) * (1 - c.across) * pixel(c.top, c.left) : 0,
                                 c.inside ? (1 - c.down) * c.across * pixel(c.top, c.right) : 0,
                                 c.inside ? c.down * (1 - c.across) * pixel(c.bottom, c.left) : 0,
                                 c.inside ? c.down * c.across * pixel(c.bottom, c.right) : 0};
      for (const double value : weighted) {
        sum += value;
        most = std::max(most, value);
      }
    }
  }
  const int64_t count = std::max<int64_t>(1, r.rows * r.columns);
  return a.averages ? sum / static_cast<double>(count) : r.rows * r.columns == 0 ? 0 : most;
}

void evaluate_roi_align(HostCall& call) {
  const Tensor& x = call.tensor(0);
  const Tensor& boxes = call.tensor(1);
  const Tensor images = call.tensor(2).cast(DataType::int64);
  call.require(x.shape().size() == 4 && boxes.shape().size() == 2 && boxes.shape()[1] == 4 &&
                   images.size() == boxes.shape()[0],
               "it takes images [N, C, H, W], boxes [R, 4] and the image of each box [R]");
  const bool half_pixel =
      call.version() >= 16 && call.text("coordinate_transformation_mode", "half_pixel") == "half_pixel";
  const Alignment a{call.integer("output_height", 1),  call.integer("output_width", 1),
                    call.real("spatial_scale", 1),     half_pixel ? 0.5 : 0,
                    call.integer("sampling_ratio", 0), call.text("mode", "avg") == "avg"};
  call.require(a.height > 0 && a.width > 0 && a.height < 65536 && a.width < 65536 && a.ratio < 65536,
               "its result has no such extent");
  const int64_t channels = x.shape()[1];
  Tensor y(x.data_type(), {boxes.shape()[0], channels, a.height, a.width});
  int64_t place = 0;
  for (int64_t row = 0; row < boxes.shape()[0]; ++row) {
    const int64_t image = images.data<int64_t>()[static_cast<size_t>(row)];
    call.require(image >= 0 && image < x.shape()[0], "a box is in an image that is not there");
    const Region r = region_of(boxes, row, a);
    call.require(r.rows < 65536 && r.columns < 65536, "a box is too large");
    for (int64_t channel = 0; channel < channels; ++channel) {
      for (int64_t i = 0; i < a.height; ++i) {
        for (int64_t j = 0; j < a.width; ++j)
          y.set(place++, bin_value(x, image * channels + channel, r, a, i, j));
      }
    }
  }
  call.result(0, y);
}

// By elimination, with the largest element of a column first.
double determinant(std::vector<double> m, int64_t n) {
  double result = 1;
  const auto at = [&](int64_t i, int64_t j) -> double& { return m[static_cast<size_t>(i * n + j)]; };
  for (int64_t k = 0; k < n; ++k) {
    int64_t best = k;
    for (int64_t i = k + 1; i < n; ++i) {
      if (std::abs(at(i, k)) > std::abs(at(best, k))) best = i;
    }
    if (at(best, k) == 0) return 0;
    if (best != k) {
      for (int64_t j = 0; j < n; ++j) std::swap(at(k, j), at(best, j));
      result = -result;
    }
    result *= at(k, k);
    for (int64_t i = k + 1; i < n; ++i) {
      const double factor = at(i, k) / at(k, k);
      for (int64_t j = k; j < n; ++j) at(i, j) -= factor * at(k, j);
    }
  }
  return result;
}

void evaluate_determinant(HostCall& call) {
  const Tensor& x = call.tensor(0);
  const Shape& shape = x.shape();
  call.require(shape.size() >= 2 && shape[shape.size() - 1] == shape[shape.size() - 2],
               "it takes square matrices");
  const int64_t n = shape.back();
  Tensor y(x.data_type(), Shape(shape.begin(), shape.end() - 2));
  const std::vector<double> values = x.to_doubles();
  for (int64_t i = 0; i < y.size(); ++i)
    y.set(i, determinant({values.begin() + i * n * n, values.begin() + (i + 1) * n * n}, n));
  call.result(0, y);
}

const RuleRegistrations kRegistration{
    {.name = "RoiAlign", .evaluate = evaluate_roi_align},
    {.name = "Det", .evaluate = evaluate_determinant},
};

}  // namespace
}  // namespace tessera::onnx
