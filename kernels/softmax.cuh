// Softmax and cross-entropy along one axis of [outer, extent, inner]: one block a row. The largest element
// and the sum of the exponentials come from one pass over the row ("Online normalizer calculation for
// softmax", Milakov and Gimelshein, 2018), and what is read once more is kept in shared memory where it fits.
#pragma once

#include "rows.cuh"

namespace tessera {

// Of some elements of a row. The sum is 0 where all of them are -inf, and NaN where one is NaN or +inf.
template <typename A>
struct Exponentials {
  A largest = Extremes<A>::lowest();
  A sum = 0;  // of exp(x - largest)
};

__device__ inline float larger(float a, float b) {
  return fmaxf(a, b);
}
__device__ inline double larger(double a, double b) {
  return fmax(a, b);
}
// What to subtract from elements up to `largest` before the exponential: of -inf nothing may be subtracted.
template <typename A>
__device__ inline A subtrahend(A largest) {
  return largest == Extremes<A>::lowest() ? A(0) : largest;
}

template <int V, typename T, typename A>
__device__ inline void add_exponentials(Exponentials<A>& own, const Pack<T, V>& values) {
  A largest = own.largest;
#pragma unroll
  for (int j = 0; j < V; ++j) largest = larger(largest, A(widen(values.at[j])));
  const A base = subtrahend(largest);
  own.sum *= op_exp(own.largest - base);
#pragma unroll
  for (int j = 0; j < V; ++j) own.sum += op_exp(A(widen(values.at[j])) - base);
  own.largest = largest;
}

struct SumOfExponentials {
  template <typename A>
  static __device__ Exponentials<A> combine(const Exponentials<A>& a, const Exponentials<A>& b) {
    const A largest = larger(a.largest, b.largest);
    const A base = subtrahend(largest);
    return {largest, a.sum * op_exp(a.largest - base) + b.sum * op_exp(b.largest - base)};
  }
};

template <typename A>
__device__ inline A exchange(A own, int distance) {
  return __shfl_xor_sync(~0u, own, distance);
}
template <typename A>
__device__ inline Exponentials<A> exchange(const Exponentials<A>& own, int distance) {
  return {exchange(own.largest, distance), exchange(own.sum, distance)};
}

// Combines the values of all threads of the block, in a fixed order; each thread gets the same bits.
// `scratch` holds a value for each warp and may be used again after the call.
template <typename Operation, int kThreads, typename V>
__device__ inline V combine_threads(V own, V* scratch) {
  constexpr int kWarps = kThreads / 32;
  static_assert(kWarps > 1 && kWarps <= 32 && (kWarps & (kWarps - 1)) == 0, "powers of two");
  const int thread = static_cast<int>(threadIdx.x);
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2) own = Operation::combine(own, exchange(own, distance));
  if (thread % 32 == 0) scratch[thread / 32] = own;
  __syncthreads();
  own = scratch[thread % kWarps];
  __syncthreads();
#pragma unroll
  for (int distance = kWarps / 2; distance > 0; distance /= 2)
    own = Operation::combine(own, exchange(own, distance));
  // Partners add in either order, which rounding may show.
  if (thread == 0) scratch[0] = own;
  __syncthreads();
  own = scratch[0];
  __syncthreads();
  return own;
}

// Calls function(first, values) for all elements of a row, some of them at a time: Pack<T, 1>, or whole
// accesses of 16 bytes where elements lie side by side. What begins where such an access does is the same for
// rows whose addresses differ by multiples of 16 bytes, and each thread is given the same elements of them.
template <int kThreads, int64 inner, typename T, typename F>
__device__ inline void for_each_pack(const T* row, int64 extent, F function) {
  const auto thread = static_cast<int64>(threadIdx.x);
  if constexpr (inner != 1) {
    for (int64 i = thread; i < extent; i += kThreads) function(i, load<1>(row + i * inner));
    return;
  } else {
    constexpr int V = 16 / sizeof(T);
    constexpr int kAtATime = 4;  // loads under way before the first result is used
    const auto misplaced = static_cast<int64>(reinterpret_cast<uint64>(row) / sizeof(T) % V);
    const int64 before = misplaced == 0 ? 0 : V - misplaced;
    const int64 head = before < extent ? before : extent;
    const int64 packs = (extent - head) / V;
    if (thread < head) function(thread, load<1>(row + thread));
    for (int64 begin = thread; begin < packs; begin += kAtATime * kThreads) {
      Pack<T, V> values[kAtATime];
#pragma unroll
      for (int n = 0; n < kAtATime; ++n) {
        const int64 pack = begin + n * kThreads;
        if (pack < packs) values[n] = load<V>(row + head + pack * V);
      }
#pragma unroll
      for (int n = 0; n < kAtATime; ++n) {
        const int64 pack = begin + n * kThreads;
        if (pack < packs) function(head + pack * V, values[n]);
      }
    }
    const int64 last = head + packs * V + thread;
    if (last < extent) function(last, load<1>(row + last));
  }
}

// Where a row is kept, with as much before it as lies between the row in memory and the 16 bytes that it
// begins in; the row itself where it is not kept.
template <bool kKept, typename T>
__device__ inline const T* second_source(const T* row) {
  if constexpr (kKept) {
    extern __shared__ uint4 memory[];
    return reinterpret_cast<const T*>(memory) + reinterpret_cast<uint64>(row) / sizeof(T) % (16 / sizeof(T));
  } else {
    return row;
  }
}

// Each thread keeps what it is given, and reads no more of the row later; but rows lie at other places.
template <int kThreads, int64 inner, bool kKept, typename T, typename A>
__device__ inline Exponentials<A> row_exponentials(const T* row, int64 extent, Exponentials<A>* scratch) {
  Exponentials<A> own;
  if constexpr (kKept) __syncthreads();
  for_each_pack<kThreads, inner>(row, extent, [&](int64 first, const auto& values) {
    if constexpr (kKept) store<Memory::shared>(const_cast<T*>(second_source<true>(row)) + first, values);
    add_exponentials(own, values);
  });
  return combine_threads<SumOfExponentials, kThreads>(own, scratch);
}

template <int kThreads, int64 inner, bool kKept, bool logarithm, typename T>
__device__ void softmax(const T* x, T* y, int64 rows, int64 extent) {
  using A = Accumulator<T>;
  __shared__ Exponentials<A> scratch[kThreads / 32];
  for (int64 row = blockIdx.x; row < rows; row += gridDim.x) {
    const int64 start = row_start(row, extent, inner);
    const auto total = row_exponentials<kThreads, inner, kKept>(x + start, extent, scratch);
    const A log_sum = op_log(total.sum);
    const A factor = 1 / total.sum;
    const T* again = second_source<kKept>(x + start);
    for_each_pack<kThreads, inner>(again, extent, [&](int64 first, auto values) {
      for (T& value : values.at) {
        const A own = A(widen(value)) - total.largest;
        value = narrow<T>(logarithm ? own - log_sum : op_exp(own) * factor);
      }
      store(y + start + first * inner, values);
    });
  }
}

// A row's loss, of what is left of it beside the sums. `spread` is the mean over the classes of what logits
// lie below the largest. All logits are less the largest: beside that, their differences would lose their
// last digits.
template <typename A>
__device__ inline A loss_of_row(const Exponentials<A>& total, A logit, A spread, double smoothing) {
  const A log_sum = op_log(total.sum);
  return A(1 - smoothing) * (log_sum - (logit - total.largest)) + A(smoothing) * (log_sum - spread);
}

struct Smallest {
  template <typename A>
  static __device__ A combine(A a, A b) {
    return a < b ? a : b;
  }
};

// Where the largest of `extent` elements is: what each thread found, as numbers of which the smallest counts.
// A NaN is larger than every number, and of equals the first counts.
struct Likeliest {
  int64 extent;
  int64 found = 2 * extent;

  // `largest`: of the row, without its NaNs.
  template <int V, typename T, typename A>
  __device__ inline void look_at(const Pack<T, V>& values, int64 first, A largest) {
#pragma unroll
    for (int j = 0; j < V; ++j) {
      const A value = A(widen(values.at[j]));
      if (!(value < largest)) found = Smallest::combine(found, first + j + (is_nan(value) ? 0 : extent));
    }
  }
  __device__ inline int32 place() const {
    return static_cast<int32>(found < extent ? found : found - extent);
  }
};

template <typename T>
struct NotDeduced {
  using Type = T;
};

// Of logits [rows, columns] whose first columns are the classes, what there is a place for: the loss, its
// gradient dx = dy (softmax(x) - target), 0 in columns that are no classes, and the likeliest class. The
// gradient may lie where the logits do: a thread reads what it writes, and the label's logit is read before
// the first is written.
template <int kThreads, bool kKept, typename T, typename L>
__device__ void cross_entropy(const T* logits, const L* labels, const Accumulator<T>* loss_gradient,
                              Accumulator<T>* loss, typename NotDeduced<T>::Type* gradient, int32* likeliest,
                              int64 rows, int64 columns, int64 classes, double smoothing, int64 ignored) {
  using A = Accumulator<T>;
  __shared__ Exponentials<A> scratch[kThreads / 32];
  __shared__ A sums[kThreads / 32];
  __shared__ int64 places[kThreads / 32];
  const A others = A(smoothing) / A(classes);
  const bool spreads = loss != nullptr && smoothing > 0;
  for (int64 row = blockIdx.x; row < rows; row += gridDim.x) {
    const int64 label = labels[row];
    const bool counts = label != ignored && label >= 0 && label < classes;
    // What a row without a class has as its loss, and as the gradient of each logit.
    const A every = label == ignored ? A(0) : Extremes<A>::highest() - Extremes<A>::highest();
    const T* x = logits + row * columns;
    T* dx = gradient == nullptr ? nullptr : gradient + row * columns;
    if (gradient != nullptr) {
      for (int64 i = classes + threadIdx.x; i < columns; i += kThreads) dx[i] = narrow<T>(A(0));
    }
    if (!counts && loss != nullptr && threadIdx.x == 0) loss[row] = every;
    if (!counts && likeliest == nullptr) {
      if (gradient == nullptr) continue;
      for (int64 i = threadIdx.x; i < classes; i += kThreads) dx[i] = narrow<T>(every);
      continue;
    }
    const A logit = counts ? A(widen(x[label])) : A(0);
    const auto total = row_exponentials<kThreads, 1, kKept>(x, classes, scratch);
    const A dy = counts && gradient != nullptr ? loss_gradient[row] : A(0);
    const A factor = 1 / total.sum;
    const auto gradient_of = [&](T value, A target) {
      return narrow<T>(counts ? dy * (op_exp(A(widen(value)) - total.largest) * factor - target) : every);
    };
    A spread = 0;
    Likeliest best{classes};
    const auto add = [&](int64 first, const auto& values) {
      if (spreads) {
        for (const T& value : values.at) spread += A(widen(value)) - total.largest;
      }
      if (likeliest != nullptr) best.look_at(values, first, total.largest);
      if (gradient == nullptr) return;
      auto results = values;
      for (T& value : results.at) value = gradient_of(value, others);
      constexpr int V = sizeof(values.at) / sizeof(T);
      if (counts && label >= first && label < first + V) {
#pragma unroll
        for (int j = 0; j < V; ++j) {
          if (first + j == label) results.at[j] = gradient_of(values.at[j], others + A(1 - smoothing));
        }
      }
      store(dx + first, results);
    };
    if (gradient != nullptr || likeliest != nullptr || spreads)
      for_each_pack<kThreads, 1>(second_source<kKept>(x), classes, add);
    if (spreads) spread = combine_threads<Sum, kThreads>(spread, sums) / A(classes);
    if (loss != nullptr && counts && threadIdx.x == 0)
      loss[row] = loss_of_row(total, logit, spread, smoothing);
    if (likeliest != nullptr) {
      best.found = combine_threads<Smallest, kThreads>(best.found, places);
      if (threadIdx.x == 0) likeliest[row] = best.place();
    }
  }
}

}  // namespace tessera
