// DFT, STFT, HannWindow, HammingWindow, BlackmanWindow, MelWeightMatrix.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "onnx/lowering.h"
#include "onnx/types.h"

namespace tessera::onnx {
namespace {

constexpr int64_t kLongest = 1 << 16;  // of a transform, which is a product with a matrix

struct Matrices {
  Tensor cosine;  // [inputs, outputs]
  Tensor sine;
};

// e^(sign 2 pi i j k / length).
Matrices transform(DataType type, int64_t inputs, int64_t outputs, int64_t length, double sign) {
  Matrices m{Tensor(type, {inputs, outputs}), Tensor(type, {inputs, outputs})};
  for (int64_t j = 0; j < inputs; ++j) {
    for (int64_t k = 0; k < outputs; ++k) {
      const double angle =
          sign * 2 * std::numbers::pi * static_cast<double>(j * k % length) / static_cast<double>(length);
      m.cosine.set(j * outputs + k, std::cos(angle));
      m.sine.set(j * outputs + k, std::sin(angle));
    }
  }
  return m;
}

// x: [..., n], real and imaginary (or null): [..., outputs, 2].
Value* transformed(Value* real, Value* imaginary, int64_t outputs, int64_t length, double sign,
                   double factor) {
  Graph& graph = real->graph();
  const int64_t rank = real->type().rank();
  const int64_t used = std::min(extent(real, rank - 1), length);
  const Matrices m = transform(real->data_type(), used, outputs, length, sign);
  Value* cosine = ops::constant(graph, m.cosine);
  Value* sine = ops::constant(graph, m.sine);
  real = slice_axis(real, rank - 1, 0, used);
  Value* y_real = ops::matmul(real, cosine);
  Value* y_imaginary = ops::matmul(real, sine);
  if (imaginary != nullptr) {
    imaginary = slice_axis(imaginary, rank - 1, 0, used);
    y_real = ops::subtract(y_real, ops::matmul(imaginary, sine));
    y_imaginary = ops::add(y_imaginary, ops::matmul(imaginary, cosine));
  }
  Value* y = ops::concat({unsqueeze(y_real, {rank}), unsqueeze(y_imaginary, {rank})}, rank);
  return factor == 1 ? y : ops::multiply(y, factor);
}

// The real signal whose first half of frequencies is given: each counts with its mirror image.
Value* real_signal(Value* real, Value* imaginary, int64_t length) {
  Graph& graph = real->graph();
  const int64_t rank = real->type().rank();
  const int64_t used = std::min(extent(real, rank - 1), length / 2 + 1);
  Matrices m = transform(real->data_type(), used, length, length, 1);
  for (int64_t i = 0; i < m.cosine.size(); ++i) {
    const int64_t frequency = i / length;
    const double weight =
        (frequency == 0 || 2 * frequency == length ? 1.0 : 2.0) / static_cast<double>(length);
    m.cosine.set(i, m.cosine.at(i) * weight);
    m.sine.set(i, m.sine.at(i) * weight);
  }
  Value* y = ops::matmul(slice_axis(real, rank - 1, 0, used), ops::constant(graph, m.cosine));
  if (imaginary != nullptr)
    y = ops::subtract(y, ops::matmul(slice_axis(imaginary, rank - 1, 0, used), ops::constant(graph, m.sine)));
  return unsqueeze(y, {rank});
}

int64_t checked_length(const program::Call& call, int64_t length) {
  call.require(length > 0 && length <= kLongest, fmt::format("a transform of {} elements", length));
  return length;
}

// One part of complex numbers [..., 2], or all of real ones [..., 1].
Value* part_of_complex(Value* x, int64_t part) {
  const int64_t last = x->type().rank() - 1;
  if (part >= extent(x, last)) return nullptr;
  return squeeze(slice_axis(x, last, part, part + 1), {last});
}

void lower_dft(LowerCall& call) {
  Value* x = call.operand(0);
  const int64_t rank = x->type().rank();
  int64_t axis = call.version() < 20 ? call.integer("axis", 1) : call.has(2) ? known_integer(call, 2) : -2;
  axis = axis_of(call, axis, rank);
  call.require(axis != rank - 1, "its last axis is that of the complex numbers' parts");
  const bool inverse = call.integer("inverse", 0) != 0;
  const bool one_sided = call.integer("onesided", 0) != 0;
  const int64_t usual = inverse && one_sided ? 2 * (extent(x, axis) - 1) : extent(x, axis);
  const int64_t length = checked_length(call, call.has(1) ? known_integer(call, 1) : usual);
  // Without the last axis, which the parts take, the transformed one comes last.
  std::vector<int64_t> to_last;
  for (int64_t i = 0; i < rank - 1; ++i) to_last.push_back(i == axis ? rank - 2 : i == rank - 2 ? axis : i);
  const auto rows = [&](int64_t part) {
    Value* value = part_of_complex(x, part);
    return value == nullptr ? nullptr : transpose(value, to_last);
  };
  Value* y = nullptr;
  if (inverse && one_sided) {
    y = real_signal(rows(0), rows(1), length);
  } else {
    const int64_t outputs = one_sided ? length / 2 + 1 : length;
    y = transformed(rows(0), rows(1), outputs, length, inverse ? 1 : -1,
                    inverse ? 1.0 / static_cast<double>(length) : 1);
  }
  to_last.push_back(rank - 1);
  call.result(0, transpose(y, to_last));
}

// signal: [batch, length, 1 or 2]; frames of it, weighted and transformed.
void lower_stft(LowerCall& call) {
  Value* signal = call.operand(0);
  const int64_t step = known_integer(call, 1);
  const int64_t length = call.has(3) ? known_integer(call, 3) : call.has(2) ? extent(call.operand(2), 0) : 0;
  checked_length(call, length);
  call.require(signal->type().rank() == 3 && step > 0 && extent(signal, 1) >= length,
               "its signal [batch, length, parts] is shorter than a frame");
  const int64_t frames = (extent(signal, 1) - length) / step + 1;
  Graph& graph = call.graph();
  const Shape grid{frames, length};
  Value* places = ops::add(
      ops::multiply(counted(graph, grid, 0), number(graph, DataType::int64, static_cast<double>(step))),
      counted(graph, grid, 1));
  const auto framed = [&](int64_t part) -> Value* {
    Value* value = part_of_complex(signal, part);
    if (value == nullptr) return nullptr;
    value = ops::gather(value, places, 1);  // [batch, frames, length]
    return call.has(2) ? ops::multiply(value, call.operand(2)) : value;
  };
  const int64_t outputs = call.integer("onesided", 1) != 0 ? length / 2 + 1 : length;
  call.result(0, transformed(framed(0), framed(1), outputs, length, -1, 1));
}

// a - b cos(2 pi i / n) + c cos(4 pi i / n).
void lower_window(LowerCall& call, double a, double b, double c) {
  const int64_t size = known_integer(call, 0);
  call.require(size >= 0 && size <= (int64_t{1} << 31), "its size is to be a number of elements");
  const DataType type = data_type_of(call.integer("output_datatype", 1));
  const auto n = static_cast<double>(call.integer("periodic", 1) != 0 ? size : size - 1);
  Tensor window(type, {size});
  for (int64_t i = 0; i < size; ++i) {
    const double angle = n == 0 ? 0 : 2 * std::numbers::pi * static_cast<double>(i) / n;
    window.set(i, a - b * std::cos(angle) + c * std::cos(2 * angle));
  }
  call.result(0, window);
}

double mel_of(double hertz) {
  return 2595 * std::log10(1 + hertz / 700);
}

// Triangles over the frequencies of a transform, at equal distances in mel.
void lower_mel_weights(LowerCall& call) {
  const int64_t bins = known_integer(call, 0);
  const int64_t length = checked_length(call, known_integer(call, 1));
  const int64_t rate = known_integer(call, 2);
  const double low = mel_of(known_number(call, 3));
  const double high = mel_of(known_number(call, 4));
  call.require(bins > 0 && bins <= kLongest && rate > 0, "its bins and its sample rate are to be positive");
  const int64_t frequencies = length / 2 + 1;
  const double step = (high - low) / static_cast<double>(bins + 2);
  std::vector<int64_t> edges;
  for (int64_t i = 0; i < bins + 2; ++i) {
    const double hertz = 700 * (std::pow(10, (low + static_cast<double>(i) * step) / 2595) - 1);
    edges.push_back(static_cast<int64_t>(
        std::floor(static_cast<double>(length + 1) * hertz / static_cast<double>(rate))));
    call.require(edges.back() >= 0 && edges.back() < frequencies,
                 "its edges are outside of what the transform gives");
  }
  Tensor weights(data_type_of(call.integer("output_datatype", 1)), {frequencies, bins});
  for (int64_t bin = 0; bin < bins; ++bin) {
    const auto at = static_cast<size_t>(bin);
    const int64_t left = edges[at];
    const int64_t center = edges[at + 1];
    const int64_t right = edges[at + 2];
    for (int64_t j = left; j <= center; ++j)
      weights.set(j * bins + bin,
                  left == center ? 1 : static_cast<double>(j - left) / static_cast<double>(center - left));
    for (int64_t j = center; j < right; ++j)
      weights.set(j * bins + bin, static_cast<double>(right - j) / static_cast<double>(right - center));
  }
  call.result(0, weights);
}

const RuleRegistrations kRegistration{
    {.name = "DFT", .lower = lower_dft},
    {.name = "STFT", .lower = lower_stft},
    {.name = "HannWindow", .lower = [](LowerCall& call) { lower_window(call, 0.5, 0.5, 0); }},
    {.name = "HammingWindow", .lower = [](LowerCall& call) { lower_window(call, 25.0 / 46, 21.0 / 46, 0); }},
    {.name = "BlackmanWindow", .lower = [](LowerCall& call) { lower_window(call, 0.42, 0.5, 0.08); }},
    {.name = "MelWeightMatrix", .lower = lower_mel_weights},
};

}  // namespace
}  // namespace tessera::onnx
