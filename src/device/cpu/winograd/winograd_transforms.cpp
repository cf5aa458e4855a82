#include "device/cpu/winograd/winograd_transforms.h"

#include "device/cpu/runtime/highway_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "device/cpu/winograd/winograd_transforms.cpp"
#include <algorithm>

#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "device/cpu/runtime/limits-inl.h"
#include "device/cpu/runtime/vector_memory-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tessera::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

constexpr int kTile = kWinogradTile;
constexpr int kSquare = kWinogradSquare;
constexpr int kWindow = 3;

// The transforms of one line of a tile; both axes of the tile go through the same.
struct InputLine {  // pixels 6 -> places 6
  static constexpr int kIn = kTile;
  static constexpr int kOut = kTile;
  template <class D, class V>
  HWY_INLINE void operator()(D d, const V* x, V* out) const {
    const V four = hn::Set(d, 4.0F);
    const V five = hn::Set(d, 5.0F);
    const V even = hn::NegMulAdd(four, x[2], x[4]);
    const V odd = hn::NegMulAdd(four, x[1], x[3]);
    const V even_wide = hn::Sub(x[4], x[2]);
    const V odd_wide = hn::Mul(hn::Set(d, 2.0F), hn::Sub(x[3], x[1]));
    out[0] = hn::MulAdd(four, x[0], hn::NegMulAdd(five, x[2], x[4]));
    out[1] = hn::Add(even, odd);
    out[2] = hn::Sub(even, odd);
    out[3] = hn::Add(even_wide, odd_wide);
    out[4] = hn::Sub(even_wide, odd_wide);
    out[5] = hn::MulAdd(four, x[1], hn::NegMulAdd(five, x[3], x[5]));
  }
};

struct FilterLine {  // taps 3 -> places 6
  static constexpr int kIn = kWindow;
  static constexpr int kOut = kTile;
  template <class D, class V>
  HWY_INLINE void operator()(D d, const V* g, V* out) const {
    const V sixth = hn::Set(d, 1.0F / 6);
    const V outer = hn::Mul(sixth, hn::Add(g[0], g[2]));
    const V inner = hn::Mul(sixth, g[1]);
    const V outer_wide = hn::MulAdd(hn::Set(d, 1.0F / 24), g[0], hn::Mul(sixth, g[2]));
    const V inner_wide = hn::Mul(hn::Set(d, 1.0F / 12), g[1]);
    out[0] = hn::Mul(hn::Set(d, 0.25F), g[0]);
    out[1] = hn::Neg(hn::Add(outer, inner));
    out[2] = hn::Sub(inner, outer);
    out[3] = hn::Add(outer_wide, inner_wide);
    out[4] = hn::Sub(outer_wide, inner_wide);
    out[5] = g[2];
  }
};

struct GradientLine {  // the result's gradient 4 -> places 6
  static constexpr int kIn = kSquare;
  static constexpr int kOut = kTile;
  template <class D, class V>
  HWY_INLINE void operator()(D d, const V* g, V* out) const {
    const V sixth = hn::Set(d, 1.0F / 6);
    const V even = hn::Mul(sixth, hn::Add(g[0], g[2]));
    const V odd = hn::Mul(sixth, hn::Add(g[1], g[3]));
    const V even_wide = hn::MulAdd(hn::Set(d, 1.0F / 24), g[0], hn::Mul(sixth, g[2]));
    const V odd_wide = hn::MulAdd(hn::Set(d, 1.0F / 12), g[1], hn::Mul(hn::Set(d, 1.0F / 3), g[3]));
    out[0] = hn::Mul(hn::Set(d, 0.25F), g[0]);
    out[1] = hn::Neg(hn::Add(even, odd));
    out[2] = hn::Sub(odd, even);
    out[3] = hn::Add(even_wide, odd_wide);
    out[4] = hn::Sub(even_wide, odd_wide);
    out[5] = g[3];
  }
};

struct OutputLine {  // places 6 -> results 4
  static constexpr int kIn = kTile;
  static constexpr int kOut = kSquare;
  template <class D, class V>
  HWY_INLINE void operator()(D d, const V* m, V* out) const {
    const V even = hn::Add(m[1], m[2]);
    const V odd = hn::Sub(m[1], m[2]);
    const V even_wide = hn::Add(m[3], m[4]);
    const V odd_wide = hn::Sub(m[3], m[4]);
    out[0] = hn::Add(hn::Add(m[0], even), even_wide);
    out[1] = hn::MulAdd(hn::Set(d, 2.0F), odd_wide, odd);
    out[2] = hn::MulAdd(hn::Set(d, 4.0F), even_wide, even);
    out[3] = hn::Add(hn::MulAdd(hn::Set(d, 8.0F), odd_wide, odd), m[5]);
  }
};

struct WeightLine {  // places 6 -> taps 3
  static constexpr int kIn = kTile;
  static constexpr int kOut = kWindow;
  template <class D, class V>
  HWY_INLINE void operator()(D d, const V* m, V* out) const {
    const V even = hn::Add(m[1], m[2]);
    const V even_wide = hn::Add(m[3], m[4]);
    const V odd_wide = hn::Sub(m[3], m[4]);
    out[0] = hn::Add(hn::Add(m[0], even), even_wide);
    out[1] = hn::MulAdd(hn::Set(d, 2.0F), odd_wide, hn::Sub(m[1], m[2]));
    out[2] = hn::Add(hn::MulAdd(hn::Set(d, 4.0F), even_wide, even), m[5]);
  }
};

// load(row, column) gives a vector, store(row, column, vector) takes one.
template <class Line, class D, class Load, class Store>
HWY_INLINE void transform(D d, Load&& load, Store&& store) {
  using V = hn::Vec<D>;
  V half[Line::kOut][Line::kIn];
  for (int column = 0; column < Line::kIn; ++column) {
    V in[Line::kIn];
    V out[Line::kOut];
    for (int row = 0; row < Line::kIn; ++row) in[row] = load(row, column);
    Line()(d, in, out);
    for (int row = 0; row < Line::kOut; ++row) half[row][column] = out[row];
  }
  for (int row = 0; row < Line::kOut; ++row) {
    V out[Line::kOut];
    Line()(d, half[row], out);
    for (int column = 0; column < Line::kOut; ++column) store(row, column, out[column]);
  }
}

// The pixels of one square, as offsets of elements; a pixel outside the image has none.
template <int kEdge>
struct SquarePixels {
  static constexpr int64_t kOutside = -1;
  int64_t offsets[kEdge][kEdge];

  SquarePixels(const WinogradImages& images, int64_t square) {
    const int64_t b = square % images.squares_wide;
    const int64_t a = square / images.squares_wide % images.squares_high;
    const int64_t n = square / (images.squares_wide * images.squares_high);
    const int64_t top = a * kSquare - images.before[0];
    const int64_t left = b * kSquare - images.before[1];
    for (int row = 0; row < kEdge; ++row) {
      for (int column = 0; column < kEdge; ++column) {
        const int64_t y = top + row;
        const int64_t x = left + column;
        const bool inside = y >= 0 && y < images.height && x >= 0 && x < images.width;
        offsets[row][column] =
            inside ? ((n * images.height + y) * images.width + x) * images.channels : kOutside;
      }
    }
  }
};

template <class Line>
void squares_to_rows(const WinogradImages& images, const float* pixels, Range squares, Range channels,
                     const WinogradMatrices<float>& out) {
  SquarePixels<Line::kIn> places(images, squares.begin);
  for (int64_t square = squares.begin; square < squares.end; ++square) {
    const SquarePixels<Line::kIn> next(images, std::min(square + 1, squares.end - 1));
    float* row = out.data + (square - squares.begin) * out.row_stride;
    for_each_vector(channels.size(), [&](auto d, int64_t c) {
      transform<Line>(
          d,
          [&](int y, int x) {
            const int64_t offset = places.offsets[y][x];
            // The first columns of the next square are the last of this one.
            if (x >= Line::kIn - kSquare && next.offsets[y][x] >= 0) {
              __builtin_prefetch(pixels + next.offsets[y][x] + channels.begin + c, /*for writing=*/0,
                                 /*locality=*/3);
            }
            return offset < 0 ? hn::Zero(d) : hn::LoadU(d, pixels + offset + channels.begin + c);
          },
          [&](int y, int x, auto value) {
            hn::StoreU(value, d, row + (y * kTile + x) * out.matrix_stride + c);
          });
    });
    places = next;
  }
}

void input(const WinogradImages& images, const float* x, Range squares, Range channels,
           const WinogradMatrices<float>& out) {
  squares_to_rows<InputLine>(images, x, squares, channels, out);
}

void gradient(const WinogradImages& images, const float* dy, Range squares, Range channels,
              const WinogradMatrices<float>& out) {
  squares_to_rows<GradientLine>(images, dy, squares, channels, out);
}

void output(const WinogradImages& images, const WinogradMatrices<const float>& in, Range squares,
            Range channels, const LoopEpilogue& epilogue, float* y) {
  for (int64_t square = squares.begin; square < squares.end; ++square) {
    const SquarePixels<kSquare> places(images, square);
    const float* row = in.data + (square - squares.begin) * in.row_stride;
    for_each_vector(channels.size(), [&](auto d, int64_t c) {
      const int64_t channel = channels.begin + c;
      const auto bias = epilogue.bias != nullptr ? hn::LoadU(d, epilogue.bias + channel) : hn::Zero(d);
      transform<OutputLine>(
          d, [&](int i, int j) { return hn::LoadU(d, row + (i * kTile + j) * in.matrix_stride + c); },
          [&](int i, int j, auto value) {
            const int64_t offset = places.offsets[i][j];
            if (offset < 0) return;
            value = hn::Add(value, bias);
            if (epilogue.residual != nullptr) {
              value = hn::Add(value, hn::LoadU(d, epilogue.residual + offset + channel));
            }
            value = within_limits(value, hn::Set(d, epilogue.low), hn::Set(d, epilogue.high));
            hn::StoreU(value, d, y + offset + channel);
          });
    });
  }
}

void filter(const WinogradFilter& weight, int64_t depth, int64_t width, float* out) {
  const int64_t matrix = depth * width;
  for (int64_t t = 0; t < depth; ++t) {
    const float* taps = weight.data + t * weight.depth_stride;
    float* row = out + t * width;
    for_each_vector(weight.columns, [&](auto d, int64_t column) {
      transform<FilterLine>(
          d,
          [&](int i, int j) {
            return hn::LoadU(d, taps + i * weight.tap_strides[0] + j * weight.tap_strides[1] + column);
          },
          [&](int i, int j, auto value) { hn::StoreU(value, d, row + (i * kTile + j) * matrix + column); });
    });
    for (int64_t place = 0; place < kWinogradPlaces; ++place) {
      std::fill(row + place * matrix + weight.columns, row + place * matrix + width, 0.0F);
    }
  }
}

void weight(const WinogradMatrices<const float>& sums, int64_t parts, int64_t part_stride, Range outputs,
            int64_t channels, float* result) {
  for (int64_t k = outputs.begin; k < outputs.end; ++k) {
    const float* row = sums.data + k * sums.row_stride;
    float* taps = result + k * kWindow * kWindow * channels;
    for_each_vector(channels, [&](auto d, int64_t c) {
      transform<WeightLine>(
          d,
          [&](int i, int j) {
            const float* place = row + (i * kTile + j) * sums.matrix_stride + c;
            auto sum = hn::LoadU(d, place);
            for (int64_t part = 1; part < parts; ++part) {
              sum = hn::Add(sum, hn::LoadU(d, place + part * part_stride));
            }
            return sum;
          },
          [&](int i, int j, auto value) { hn::StoreU(value, d, taps + (i * kWindow + j) * channels + c); });
    });
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tessera::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera::cpu {

HWY_EXPORT(input);
HWY_EXPORT(gradient);
HWY_EXPORT(output);
HWY_EXPORT(filter);
HWY_EXPORT(weight);

void winograd_input(const WinogradImages& images, const float* x, Range squares, Range channels,
                    const WinogradMatrices<float>& out) {
  HWY_DYNAMIC_DISPATCH(input)(images, x, squares, channels, out);
}

void winograd_gradient(const WinogradImages& images, const float* dy, Range squares, Range channels,
                       const WinogradMatrices<float>& out) {
  HWY_DYNAMIC_DISPATCH(gradient)(images, dy, squares, channels, out);
}

void winograd_output(const WinogradImages& images, const WinogradMatrices<const float>& in, Range squares,
                     Range channels, const LoopEpilogue& epilogue, float* y) {
  HWY_DYNAMIC_DISPATCH(output)(images, in, squares, channels, epilogue, y);
}

void winograd_filter(const WinogradFilter& filter, int64_t depth, int64_t width, float* out) {
  HWY_DYNAMIC_DISPATCH(filter)(filter, depth, width, out);
}

void winograd_weight(const WinogradMatrices<const float>& sums, int64_t parts, int64_t part_stride,
                     Range outputs, int64_t channels, float* weight) {
  HWY_DYNAMIC_DISPATCH(weight)(sums, parts, part_stride, outputs, channels, weight);
}

}  // namespace tessera::cpu
#endif
