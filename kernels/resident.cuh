// Work that needs sums over all rows of a channel before it can write the first of them, with one pass over
// device memory where the second would read the same again.
//
// The whole grid is resident. It is divided into teams of blocks. A team takes a slice of neighboring
// channels: its blocks read all rows of it into shared memory, add up their sums, wait for each other, and
// write the results from what they kept. Each thread reads back only what it read itself. Its share of the
// shared memory is a ring of slots through which all that it reads goes, in order: while a slice is written,
// the slots that become free take the rows of the next. Of a slice with more rows than slots the first ones
// are read again at its end.
//
// A plan P says how, in constants:
//   Element; rows, channels   the tensor, channels innermost
//   lanes                     threads side by side in a row; each takes 16 bytes of it
//   threads, members, teams   of a block, blocks of a team, teams of the grid
//   slots                     steps (one place of each thread) that are kept
//   ahead                     steps that are read ahead of their use, at most `slots`
// Work says what is done at one place, which is the Resident<P>::vector channels from `at` on.
//
// Its constants: `kept`, the packs of a place that stay in a slot; `passing`, those that are needed once;
// `changed`, how many of the kept ones take() changes.
//
// - start(channel) comes before the first row of these channels.
// - source(n, second_pass) is the tensor of a pack, kept ones first; null for one that is not needed when the
// place
//   is read again.
// - take(at, kept, passing, sums), at the first reading, changes what is kept and adds to the sums.
// - finish(channel, sums, writes) has the sums over all rows; `writes` is true in one thread of a team for
//   each channel.
// - take_in_second_pass(kept, passing) comes after a second reading, in place of take().
// - read_beside(at) returns a Beside, which write(at, kept, beside) uses with what is kept for the results.
#pragma once

#include "copies.cuh"
#include "resident_layout.h"

namespace tessera {

template <typename P>
struct Resident {
  static constexpr int vector = 16 / static_cast<int>(sizeof(typename P::Element));
  static constexpr int width = vector * P::lanes;  // channels of a slice
  static constexpr int slices = static_cast<int>(P::channels / width);
  static constexpr int stride = P::threads / P::lanes;  // rows of a step
  static constexpr int64 steps = (P::rows + stride - 1) / stride;
};

template <int V>
struct ChannelSums {
  float first[V];
  float second[V];
};

// Waits for all blocks of a team. The count goes on for ever, from run to run; it is a multiple of `members`
// whenever nobody waits.
__device__ inline void wait_for_team(uint64* arrivals, int members) {
  __syncthreads();
  if (threadIdx.x == 0) {
    uint64 ticket;
    asm volatile("atom.add.acq_rel.gpu.global.u64 %0, [%1], 1;" : "=l"(ticket) : "l"(arrivals) : "memory");
    const uint64 goal = (ticket / members + 1) * members;
    uint64 arrived;
    do {
      asm volatile("ld.acquire.gpu.global.u64 %0, [%1];" : "=l"(arrived) : "l"(arrivals) : "memory");
    } while (arrived < goal);
  }
  __syncthreads();
}

// Adds up the sums of all threads of a block, in a fixed order, into 2 * width numbers; `scratch` holds as
// many for each warp.
template <typename P>
__device__ void add_over_block(ChannelSums<Resident<P>::vector>& sums, float* scratch, float* totals) {
  constexpr int V = Resident<P>::vector, columns = 2 * Resident<P>::width, warps = P::threads / 32;
  const int thread = static_cast<int>(threadIdx.x), lane = thread % P::lanes;
#pragma unroll
  for (int distance = P::lanes; distance < 32; distance *= 2) {
#pragma unroll
    for (int v = 0; v < V; ++v) {
      sums.first[v] += __shfl_xor_sync(0xffffffffu, sums.first[v], distance);
      sums.second[v] += __shfl_xor_sync(0xffffffffu, sums.second[v], distance);
    }
  }
  if (thread % 32 < P::lanes) {
    float* own = scratch + thread / 32 * columns + lane * V;
#pragma unroll
    for (int v = 0; v < V; ++v) {
      own[v] = sums.first[v];
      own[columns / 2 + v] = sums.second[v];
    }
  }
  __syncthreads();
  for (int column = thread; column < columns; column += P::threads) {
    float sum = 0;
#pragma unroll
    for (int warp = 0; warp < warps; ++warp) sum += scratch[warp * columns + column];
    totals[column] = sum;
  }
}

// Adds up the sums of all threads of a team, in a fixed order; every thread gets those of its channels.
// `parts` holds 2 * width numbers of each block.
template <typename P>
__device__ void add_over_team(ChannelSums<Resident<P>::vector>& sums, float* parts, int member,
                              uint64* arrivals) {
  constexpr int V = Resident<P>::vector, columns = 2 * Resident<P>::width;
  constexpr int quads = columns / 4;
  constexpr int groups = P::threads / quads;  // of threads that share the members
  __shared__ float scratch[resident_scratch_rows(P::threads, columns) * columns];
  __shared__ float total[columns];
  const int thread = static_cast<int>(threadIdx.x), lane = thread % P::lanes;

  add_over_block<P>(sums, scratch, parts + member * columns);
  wait_for_team(arrivals, P::members);

  const int quad = thread % quads, group = thread / quads;
  float4 sum{0, 0, 0, 0};
#pragma unroll 8
  for (int m = group; m < P::members; m += groups) {
    // Past the first-level cache, which does not see what others write.
    const float4 part = __ldcg(reinterpret_cast<const float4*>(parts + m * columns + quad * 4));
    sum.x += part.x;
    sum.y += part.y;
    sum.z += part.z;
    sum.w += part.w;
  }
  if (group < groups) *reinterpret_cast<float4*>(scratch + group * columns + quad * 4) = sum;
  __syncthreads();
  for (int column = thread; column < columns; column += P::threads) {
    float all = 0;
#pragma unroll
    for (int g = 0; g < groups; ++g) all += scratch[g * columns + column];
    total[column] = all;
  }
  __syncthreads();
#pragma unroll
  for (int v = 0; v < V; ++v) {
    sums.first[v] = total[lane * V + v];
    sums.second[v] = total[columns / 2 + lane * V + v];
  }
}

// What one thread does with all slices of its team.
template <typename P, typename Work>
class ResidentThread {
 public:
  using T = typename P::Element;
  using R = Resident<P>;
  static constexpr int V = R::vector, K = Work::kept, Q = Work::passing;
  using Item = Pack<T, V>;

  __device__ ResidentThread(const Work& work, Item* memory)
      : work_(work),
        team_(static_cast<int>(blockIdx.x) / P::members),
        member_(static_cast<int>(blockIdx.x) % P::members),
        lane_(static_cast<int>(threadIdx.x) % P::lanes),
        row_(int64{member_} * R::stride + static_cast<int>(threadIdx.x) / P::lanes),
        steps_(static_cast<int>((R::steps - member_ + P::members - 1) / P::members)),
        rest_(steps_ > P::slots ? steps_ - P::slots : 0),
        kept_(memory + threadIdx.x),
        passing_(memory + P::slots * K * P::threads + threadIdx.x),
        next_slice_(team_) {}

  // `parts` holds 4 * width numbers for each block of the grid, `arrivals` one count for each team.
  __device__ void run(float* parts, uint64* arrivals) {
    constexpr int64 size = int64{P::members} * 2 * R::width;
    // The next slice's parts are written while a slow block still reads those of this slice: two sets.
    int set = 0;
    read_ahead();
    for (int slice = team_; slice < R::slices; slice += P::teams) {
      run_slice(channel_of(slice), parts + (int64{team_} * 2 + set) * size, arrivals + team_);
      set = 1 - set;
    }
  }

 private:
  __device__ void run_slice(int channel, float* parts, uint64* arrivals) {
    work_.start(channel);
    ChannelSums<V> sums{};
    for (int k = 0; k < steps_; ++k) {
      wait();
      if (inside(k)) {
        Item kept[K], passing[Q > 0 ? Q : 1];
        read(kept, passing);
        work_.take(place(k, channel), kept, passing, sums);
#pragma unroll
        for (int n = 0; n < Work::changed; ++n) kept_at(used_slot_, n) = kept[n];
      }
      next_use();
      if (k < rest_) next_free();
      read_ahead();
    }
    add_over_team<P>(sums, parts, member_, arrivals);
    work_.finish(channel, sums, row_ == 0);
    constexpr int batch = 4;
    for (int k = rest_; k < steps_; k += batch) {
      typename Work::Beside beside[batch];
#pragma unroll
      for (int u = 0; u < batch; ++u) {
        if (k + u < steps_ && inside(k + u)) beside[u] = work_.read_beside(place(k + u, channel));
      }
#pragma unroll
      for (int u = 0; u < batch; ++u) {
        if (k + u >= steps_) continue;
        if (inside(k + u)) {
          Item kept[K];
#pragma unroll
          for (int n = 0; n < K; ++n) kept[n] = kept_at(free_slot_, n);
          work_.write(place(k + u, channel), kept, beside[u]);
        }
        next_free();
        read_ahead();
      }
    }
    for (int k = 0; k < rest_; ++k) {
      wait();
      if (inside(k)) {
        Item kept[K], passing[Q > 0 ? Q : 1];
        read(kept, passing);
        work_.take_in_second_pass(kept, passing);
        work_.write(place(k, channel), kept, work_.read_beside(place(k, channel)));
      }
      next_use();
      next_free();
      read_ahead();
    }
  }

  __device__ int channel_of(int slice) const {
    return slice * R::width + lane_ * V;
  }
  __device__ int64 row(int k) const {
    return row_ + int64{k} * (P::members * R::stride);
  }
  __device__ bool inside(int k) const {
    return row(k) < P::rows;
  }
  __device__ int64 place(int k, int channel) const {
    return row(k) * P::channels + channel;
  }
  __device__ Item& kept_at(int slot, int n) {
    return kept_[(slot * K + n) * P::threads];
  }
  __device__ Item& passing_at(int slot, int n) {
    return passing_[(slot * Q + n) * P::threads];
  }

  __device__ void read(Item (&kept)[K], Item (&passing)[Q > 0 ? Q : 1]) {
#pragma unroll
    for (int n = 0; n < K; ++n) kept[n] = kept_at(used_slot_, n);
#pragma unroll
    for (int n = 0; n < Q; ++n) passing[n] = passing_at(used_passing_, n);
  }
  __device__ void wait() const {
    wait_for_copies(in_flight_ - 1);
  }

  static __device__ void advance(int& slot, int slots) {
    slot = slot + 1 == slots ? 0 : slot + 1;
  }
  __device__ void next_use() {
    advance(used_slot_, P::slots);
    if constexpr (Q > 0) advance(used_passing_, P::ahead);
    --in_flight_;
  }
  __device__ void next_free() {
    advance(free_slot_, P::slots);
    --taken_;
  }

  // Starts to read whatever there is a slot for.
  __device__ void read_ahead() {
    while (taken_ < P::slots && in_flight_ < P::ahead && next_slice_ < R::slices) {
      const bool second_pass = next_step_ >= steps_;
      const int k = second_pass ? next_step_ - steps_ : next_step_;
      if (inside(k)) {
        const int64 at = place(k, channel_of(next_slice_));
#pragma unroll
        for (int n = 0; n < K + Q; ++n) {
          const T* source = work_.source(n, second_pass);
          if (source == nullptr) continue;
          copy_ahead(n < K ? &kept_at(next_slot_, n) : &passing_at(next_passing_, n - K), source + at);
        }
      }
      end_of_copies();
      advance(next_slot_, P::slots);
      if constexpr (Q > 0) advance(next_passing_, P::ahead);
      ++taken_;
      ++in_flight_;
      if (++next_step_ == steps_ + rest_) {
        next_step_ = 0;
        next_slice_ += P::teams;
      }
    }
  }

  Work work_;
  const int team_, member_, lane_;
  const int64 row_;
  const int steps_;  // of a slice, for this block
  const int rest_;   // of them, those without a slot of their own
  Item* const kept_;
  Item* const passing_;

  // What is read next, used next and freed next, each in this order.
  int next_slice_;
  int next_step_ = 0;
  int next_slot_ = 0, next_passing_ = 0;
  int used_slot_ = 0, used_passing_ = 0;
  int free_slot_ = 0;
  int taken_ = 0;      // slots
  int in_flight_ = 0;  // steps read and not yet used
};

template <typename P, typename Work>
__device__ void run_resident(const Work& work, float* parts, uint64* arrivals) {
  extern __shared__ uint4 memory[];
  using Item = typename ResidentThread<P, Work>::Item;
  ResidentThread<P, Work>(work, reinterpret_cast<Item*>(memory)).run(parts, arrivals);
}

}  // namespace tessera
