// Attention of texts of any length by the Tensor Cores, with dropout of its weights: a block has queries of a
// head, 16 or 32 of them a warp's, and goes over all keys, whose scores stay in registers. Sums of the
// weights go on from keys to keys by the highest score so far.
//
// P: as in attention_block.cuh.
#pragma once

#include "attention_block.cuh"

namespace tessera {

template <typename P>
struct BlockAttentionPointers : BlockAttentionOperands<P> {
  typename P::type* y;
  float* log_sum;
};

template <typename P>
__device__ void block_attention(const BlockAttentionPointers<P>& at) {
  using Block = AttentionBlock<P, true, 1>;
  constexpr int tiles = Block::tiles, step = Block::step;
  const Block block(at.key_lengths);
  const RandomKey random = random_key_of<P>(at.counter);
  block.template read<Block::own_rows>(block.own(0), at.q, P::q(), block.first(), P::queries);
  typename Block::Results results;
  Block::clear(results);
  float largest[tiles][2], sums[tiles][2];
#pragma unroll
  for (int tile = 0; tile < tiles; ++tile) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      largest[tile][half] = Extremes<float>::lowest();
      sums[tile][half] = 0;
    }
  }

  const auto read = [&](int stage, int first) {
    block.template read<Block::passing_rows>(block.passing(stage, 0), at.k, P::k(), first, P::keys);
    block.template read<Block::passing_rows>(block.passing(stage, 1), at.v, P::v(), first, P::keys);
    block.read_biases(stage, at.bias, first);
  };
  const auto work = [&](int stage, int first) {
#pragma unroll 1
    for (int part = 0; part < Block::passing_rows; part += step) {
      if (first + part >= block.end()) break;
      typename Block::Scores weights;
      block.multiply_rows(weights, block.own(0), block.passing(stage, 0), part);
      block.scale(weights, at.bias, stage, first + part, part);
#pragma unroll
      for (int tile = 0; tile < tiles; ++tile) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          float most = largest[tile][half];
#pragma unroll
          for (const auto& column : weights[tile])
            most = fmaxf(most, fmaxf(column[2 * half], column[2 * half + 1]));
#pragma unroll
          for (int distance = 1; distance < 4; distance *= 2)
            most = fmaxf(most, __shfl_xor_sync(~0u, most, distance));
          // Where all keys so far are hidden there is nothing to take a power of.
          const float base = most == Extremes<float>::lowest() ? 0.0f : most;
          const float factor = power_of_two(largest[tile][half] - base);
          largest[tile][half] = most;
          float sum = 0;
#pragma unroll
          for (auto& column : weights[tile]) {
#pragma unroll
            for (int element = 2 * half; element < 2 * half + 2; ++element) {
              column[element] = power_of_two(column[element] - base);
              sum += column[element];
            }
          }
          sums[tile][half] = sums[tile][half] * factor + sum;
#pragma unroll
          for (auto& column : results[tile]) {
            column[2 * half] *= factor;
            column[2 * half + 1] *= factor;
          }
        }
        if constexpr (P::drops) {
          const KeptKeysOfQueries<P> kept(random, block.head(), block.first_row_of(tile), first + part,
                                          block.lane());
#pragma unroll
          for (int column = 0; column < step / 8; ++column) {
#pragma unroll
            for (int element = 0; element < 4; ++element) {
              if (!kept.stays(column, element)) weights[tile][column][element] = 0;
            }
          }
        }
      }
      block.add_weighted(results, weights, block.passing(stage, 1), part);
    }
  };
  go_over_passing(block, read, work);

  constexpr float log_2 = 0.6931471805599453f;
#pragma unroll
  for (int tile = 0; tile < tiles; ++tile) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float sum = sum_of_columns(sums[tile][half]);
      if (const int row = block.row(tile, 2 * half); block.lane() % 4 == 0 && row < P::queries)
        at.log_sum[block.head() * P::queries + row] = (largest[tile][half] + log2f(sum)) * log_2;
      const float factor = P::factor / sum;
#pragma unroll
      for (auto& column : results[tile]) {
        column[2 * half] *= factor;
        column[2 * half + 1] *= factor;
      }
    }
  }
  block.write(at.y, P::y(), block.own(0), results);
}

}  // namespace tessera
