#include "device/cpu/pooling/pooling_loops.h"

#include "device/cpu/runtime/highway_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "device/cpu/pooling/pooling_loops.cpp"
#include <algorithm>

#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "device/cpu/loops/range.h"
#include "device/cpu/runtime/vector_memory-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tessera::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// The taps of the window at `place` that lie inside the image.
HWY_INLINE Range taps_inside(const PoolGeometry& g, int axis, int64_t place) {
  const int64_t start = place * g.strides[axis] - g.padding[axis];
  return {std::max<int64_t>(0, -start), std::min(g.window[axis], g.input[axis] - start)};
}

// The windows that the pixel lies in.
HWY_INLINE Range windows_over(const PoolGeometry& g, int axis, int64_t pixel) {
  const int64_t padded = pixel + g.padding[axis];
  const int64_t stride = g.strides[axis];
  const int64_t first = padded - g.window[axis] + 1;
  return {first <= 0 ? 0 : (first + stride - 1) / stride, std::min(g.output[axis], padded / stride + 1)};
}

// Calls function(n, a, b, c) for every place of rows [begin, end) over the given extents.
template <class Function>
HWY_INLINE void for_each_place(const int64_t* extents, int64_t begin, int64_t end, Function&& function) {
  for (int64_t row = begin; row < end; ++row) {
    const int64_t b = row % extents[1];
    const int64_t a = row / extents[1] % extents[0];
    const int64_t n = row / (extents[0] * extents[1]);
    for (int64_t c = 0; c < extents[2]; ++c) function(n, a, b, c);
  }
}

// The element offset of a place.
HWY_INLINE int64_t offset_of(const PoolGeometry& g, const int64_t* extents, int64_t n, int64_t a, int64_t b,
                             int64_t c) {
  return (((n * extents[0] + a) * extents[1] + b) * extents[2] + c) * g.channels;
}

// Calls function(x_offset, tap) for the taps of one window that lie inside the image.
template <class Function>
HWY_INLINE void for_each_tap(const PoolGeometry& g, int64_t n, int64_t a, int64_t b, int64_t c,
                             Function&& function) {
  const Range ra = taps_inside(g, 0, a);
  const Range rb = taps_inside(g, 1, b);
  const Range rc = taps_inside(g, 2, c);
  for (int64_t ta = ra.begin; ta < ra.end; ++ta) {
    for (int64_t tb = rb.begin; tb < rb.end; ++tb) {
      for (int64_t tc = rc.begin; tc < rc.end; ++tc) {
        function(offset_of(g, g.input, n, a * g.strides[0] - g.padding[0] + ta,
                           b * g.strides[1] - g.padding[1] + tb, c * g.strides[2] - g.padding[2] + tc),
                 (ta * g.window[1] + tb) * g.window[2] + tc);
      }
    }
  }
}

// Calls function(y_offset, tap, elements) for the windows that a pixel lies in; `elements` of the window lie
// inside.
template <class Function>
HWY_INLINE void for_each_window(const PoolGeometry& g, int64_t n, int64_t a, int64_t b, int64_t c,
                                Function&& function) {
  const Range ra = windows_over(g, 0, a);
  const Range rb = windows_over(g, 1, b);
  const Range rc = windows_over(g, 2, c);
  for (int64_t oa = ra.begin; oa < ra.end; ++oa) {
    for (int64_t ob = rb.begin; ob < rb.end; ++ob) {
      for (int64_t oc = rc.begin; oc < rc.end; ++oc) {
        const int64_t ta = a + g.padding[0] - oa * g.strides[0];
        const int64_t tb = b + g.padding[1] - ob * g.strides[1];
        const int64_t tc = c + g.padding[2] - oc * g.strides[2];
        const int64_t elements =
            taps_inside(g, 0, oa).size() * taps_inside(g, 1, ob).size() * taps_inside(g, 2, oc).size();
        function(offset_of(g, g.output, n, oa, ob, oc), (ta * g.window[1] + tb) * g.window[2] + tc, elements);
      }
    }
  }
}

template <typename T>
void max_pool_rows(const PoolGeometry& g, const T* x, T* y, uint8_t* position, int64_t begin, int64_t end) {
  for_each_place(g.output, begin, end, [&](int64_t n, int64_t a, int64_t b, int64_t c) {
    const int64_t target = offset_of(g, g.output, n, a, b, c);
    for_each_vector(g.channels, [&](auto d, int64_t channel) HWY_ATTR {
      const hn::RebindToSigned<decltype(d)> di;
      auto best = hn::Zero(d);
      auto where = hn::Set(di, -1);
      for_each_tap(g, n, a, b, c, [&](int64_t source, int64_t tap) HWY_ATTR {
        const auto value = load_floats(d, x + source + channel);
        const auto first = hn::Lt(where, hn::Zero(di));
        const auto larger = hn::Or(hn::Gt(value, best), hn::AndNot(hn::IsNaN(best), hn::IsNaN(value)));
        const auto take = hn::Or(larger, hn::RebindMask(d, first));
        best = hn::IfThenElse(take, value, best);
        where = hn::IfThenElse(hn::RebindMask(di, take), hn::Set(di, static_cast<int32_t>(tap)), where);
      });
      store_floats(best, d, y + target + channel);
      const hn::Rebind<uint8_t, decltype(d)> bytes;
      hn::StoreU(hn::DemoteTo(bytes, where), bytes, position + target + channel);
    });
  });
}

template <typename T>
void max_pool_gradient_rows(const PoolGeometry& g, const T* dy, const uint8_t* position, T* dx, int64_t begin,
                            int64_t end) {
  for_each_place(g.input, begin, end, [&](int64_t n, int64_t a, int64_t b, int64_t c) {
    const int64_t target = offset_of(g, g.input, n, a, b, c);
    for_each_vector(g.channels, [&](auto d, int64_t channel) HWY_ATTR {
      const hn::RebindToSigned<decltype(d)> di;
      const hn::Rebind<uint8_t, decltype(d)> bytes;
      auto sum = hn::Zero(d);
      for_each_window(g, n, a, b, c, [&](int64_t source, int64_t tap, int64_t) HWY_ATTR {
        const auto where = hn::PromoteTo(di, hn::LoadU(bytes, position + source + channel));
        const auto here = hn::Eq(where, hn::Set(di, static_cast<int32_t>(tap)));
        const auto gradient = load_floats(d, dy + source + channel);
        sum = hn::Add(sum, hn::IfThenElseZero(hn::RebindMask(d, here), gradient));
      });
      store_floats(sum, d, dx + target + channel);
    });
  });
}

template <typename T>
void average_pool_rows(const PoolGeometry& g, const T* x, T* y, int64_t begin, int64_t end) {
  const int64_t volume = g.window[0] * g.window[1] * g.window[2];
  for_each_place(g.output, begin, end, [&](int64_t n, int64_t a, int64_t b, int64_t c) {
    const int64_t target = offset_of(g, g.output, n, a, b, c);
    const int64_t inside =
        taps_inside(g, 0, a).size() * taps_inside(g, 1, b).size() * taps_inside(g, 2, c).size();
    const auto divisor = static_cast<float>(g.count_padding ? volume : inside);
    for_each_vector(g.channels, [&](auto d, int64_t channel) HWY_ATTR {
      auto sum = hn::Zero(d);
      for_each_tap(g, n, a, b, c, [&](int64_t source, int64_t) HWY_ATTR {
        sum = hn::Add(sum, load_floats(d, x + source + channel));
      });
      store_floats(hn::Div(sum, hn::Set(d, divisor)), d, y + target + channel);
    });
  });
}

template <typename T>
void average_pool_gradient_rows(const PoolGeometry& g, const T* dy, T* dx, int64_t begin, int64_t end) {
  const int64_t volume = g.window[0] * g.window[1] * g.window[2];
  for_each_place(g.input, begin, end, [&](int64_t n, int64_t a, int64_t b, int64_t c) {
    const int64_t target = offset_of(g, g.input, n, a, b, c);
    for_each_vector(g.channels, [&](auto d, int64_t channel) HWY_ATTR {
      auto sum = hn::Zero(d);
      for_each_window(g, n, a, b, c, [&](int64_t source, int64_t, int64_t elements) HWY_ATTR {
        const auto divisor = static_cast<float>(g.count_padding ? volume : elements);
        sum = hn::Add(sum, hn::Div(load_floats(d, dy + source + channel), hn::Set(d, divisor)));
      });
      store_floats(sum, d, dx + target + channel);
    });
  });
}

void max_pool_any(const PoolGeometry& g, const void* x, void* y, uint8_t* position, int64_t begin,
                  int64_t end) {
  with_element_type(g.type, [&]<typename T>() {
    max_pool_rows(g, static_cast<const T*>(x), static_cast<T*>(y), position, begin, end);
  });
}

void max_pool_gradient_any(const PoolGeometry& g, const void* dy, const uint8_t* position, void* dx,
                           int64_t begin, int64_t end) {
  with_element_type(g.type, [&]<typename T>() {
    max_pool_gradient_rows(g, static_cast<const T*>(dy), position, static_cast<T*>(dx), begin, end);
  });
}

void average_pool_any(const PoolGeometry& g, const void* x, void* y, int64_t begin, int64_t end) {
  with_element_type(g.type, [&]<typename T>() {
    average_pool_rows(g, static_cast<const T*>(x), static_cast<T*>(y), begin, end);
  });
}

void average_pool_gradient_any(const PoolGeometry& g, const void* dy, void* dx, int64_t begin, int64_t end) {
  with_element_type(g.type, [&]<typename T>() {
    average_pool_gradient_rows(g, static_cast<const T*>(dy), static_cast<T*>(dx), begin, end);
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace tessera::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera::cpu {

HWY_EXPORT(max_pool_any);
HWY_EXPORT(max_pool_gradient_any);
HWY_EXPORT(average_pool_any);
HWY_EXPORT(average_pool_gradient_any);

void max_pool(const PoolGeometry& geometry, const void* x, void* y, uint8_t* position, int64_t begin,
              int64_t end) {
  HWY_DYNAMIC_DISPATCH(max_pool_any)(geometry, x, y, position, begin, end);
}
void max_pool_gradient(const PoolGeometry& geometry, const void* dy, const uint8_t* position, void* dx,
                       int64_t begin, int64_t end) {
  HWY_DYNAMIC_DISPATCH(max_pool_gradient_any)(geometry, dy, position, dx, begin, end);
}
void average_pool(const PoolGeometry& geometry, const void* x, void* y, int64_t begin, int64_t end) {
  HWY_DYNAMIC_DISPATCH(average_pool_any)(geometry, x, y, begin, end);
}
void average_pool_gradient(const PoolGeometry& geometry, const void* dy, void* dx, int64_t begin,
                           int64_t end) {
  HWY_DYNAMIC_DISPATCH(average_pool_gradient_any)(geometry, dy, dx, begin, end);
}

}  // namespace tessera::cpu
#endif
