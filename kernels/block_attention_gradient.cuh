// The gradient of block_attention.cuh, by two launches that both make the weights anew from the sums of the
// first half: blocks that have queries make theirs, the sum of y dy over each query, and a note of the
// weights that stay, whose random numbers would else be drawn once more; then blocks that have keys make
// those of keys and values. No sum is shared between blocks, so that all runs have the same bits. With the
// weights P, their dropout M and D = the sum of y dy: dv = (M P)^T dy, dS = P (M (dy v^T) - D), dq = scale dS
// k, dk = scale dS^T q.
#pragma once

#include "block_attention.cuh"

namespace tessera {

template <typename P>
struct BlockAttentionGradientPointers : BlockAttentionOperands<P> {
  using T = typename P::type;
  const T* dy;
  const T* y;
  const float* log_sum;
  float* products;  // [batch, heads, queries]: sums of y dy
  uint32* kept;     // [batch, heads, queries, words_of_a_query]: which weights stay
  T* dq;
  T* dk;
  T* dv;
};

// Rounds a warp's 16 rows by 8 columns to what is added up over them: weights that stay, and the gradients of
// scores.
template <typename P>
__device__ inline void weigh(float& weight, float& gradient, float product, bool stays) {
  if constexpr (P::drops) {
    gradient = weight * ((stays ? gradient * P::factor : 0.0f) - product);
    weight = stays ? weight : 0.0f;
  } else {
    gradient = weight * (gradient - product);
  }
}

template <int Tiles, int Columns>
__device__ inline void multiply_all(float (&numbers)[Tiles][Columns][4], float factor) {
#pragma unroll
  for (auto& tile : numbers) {
#pragma unroll
    for (auto& column : tile) {
#pragma unroll
      for (float& number : column) number *= factor;
    }
  }
}

// dq, the products, and which weights stay.
template <typename P>
__device__ void block_attention_query_gradient(const BlockAttentionGradientPointers<P>& at) {
  using Block = AttentionBlock<P, true, 2>;
  using Rows = typename Block::Rows;
  constexpr int tiles = Block::tiles, step = Block::step;
  const Block block(at.key_lengths);
  const RandomKey random = random_key_of<P>(at.counter);
  block.template read<Block::own_rows>(block.own(0), at.q, P::q(), block.first(), P::queries);
  block.template read<Block::own_rows>(block.own(1), at.dy, P::dy(), block.first(), P::queries);
  float log_sums[tiles][2], products[tiles][2];
#pragma unroll
  for (int tile = 0; tile < tiles; ++tile) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = block.row(tile, 2 * half);
      const bool is_there = row < P::queries;
      // Without a query all weights are zero.
      log_sums[tile][half] =
          is_there ? at.log_sum[block.head() * P::queries + row] * Block::log2_e : Extremes<float>::highest();
      // Two neighboring lanes have neighboring chunks; dy is read again, as what is shared is not there yet.
      float sum = 0;
      const int64 y = block.place(P::y()) + row * P::y().row, dy = block.place(P::dy()) + row * P::dy().row;
#pragma unroll
      for (int chunk = block.lane() % 4; chunk < Rows::chunks; chunk += 4) {
        if (!is_there) continue;
        const auto result = load<Rows::chunk>(at.y + y + chunk * Rows::chunk);
        const auto gradient = load<Rows::chunk>(at.dy + dy + chunk * Rows::chunk);
#pragma unroll
        for (int i = 0; i < Rows::chunk; ++i) sum += widen(result.at[i]) * widen(gradient.at[i]);
      }
      products[tile][half] = sum_of_columns(sum);
      if (is_there && block.lane() % 4 == 0)
        at.products[block.head() * P::queries + row] = products[tile][half];
    }
  }
  typename Block::Results results;
  Block::clear(results);

  const auto read = [&](int stage, int first) {
    block.template read<Block::passing_rows>(block.passing(stage, 0), at.k, P::k(), first, P::keys);
    block.template read<Block::passing_rows>(block.passing(stage, 1), at.v, P::v(), first, P::keys);
    block.read_biases(stage, at.bias, first);
  };
  const auto work = [&](int stage, int first) {
    const Rows k = block.passing(stage, 0), v = block.passing(stage, 1);
#pragma unroll 1
    for (int part = 0; part < Block::passing_rows; part += step) {
      if (first + part >= block.end()) break;
      typename Block::Scores weights, gradients;
      block.multiply_rows(weights, block.own(0), k, part);
      block.scale(weights, at.bias, stage, first + part, part);
      block.multiply_rows(gradients, block.own(1), v, part);
#pragma unroll
      for (int tile = 0; tile < tiles; ++tile) {
        const KeptKeysOfQueries<P> kept(random, block.head(), block.first_row_of(tile), first + part,
                                        block.lane());
        if constexpr (P::drops) {
          const int query = block.first_row_of(tile) + block.lane() / 2;
          if (block.lane() % 2 == 0 && query < P::queries)
            at.kept[(block.head() * P::queries + query) * words_of_a_query<P> + (first + part) / 32] =
                kept.word();
        }
#pragma unroll
        for (int column = 0; column < step / 8; ++column) {
#pragma unroll
          for (int element = 0; element < 4; ++element) {
            float& weight = weights[tile][column][element];
            weight = power_of_two(weight - log_sums[tile][element / 2]);
            weigh<P>(weight, gradients[tile][column][element], products[tile][element / 2],
                     kept.stays(column, element));
          }
        }
      }
      block.add_weighted(results, gradients, k, part);
    }
  };
  go_over_passing(block, read, work);
  multiply_all(results, P::scale);
  block.write(at.dq, P::dq(), block.own(0), results);
}

// dk and dv.
template <typename P>
__device__ void block_attention_key_gradient(const BlockAttentionGradientPointers<P>& at) {
  using Block = AttentionBlock<P, false, 2>;
  using Rows = typename Block::Rows;
  constexpr int tiles = Block::tiles, step = Block::step, passing = Block::passing_rows;
  const Block block(at.key_lengths);
  block.template read<Block::own_rows>(block.own(0), at.k, P::k(), block.first(), P::keys);
  block.template read<Block::own_rows>(block.own(1), at.v, P::v(), block.first(), P::keys);
  typename Block::Results key_gradient, value_gradient;
  Block::clear(key_gradient);
  Block::clear(value_gradient);

  // Of a stage: sums of weights, products, and words of what stays, [words][passing] each. Queries that are
  // not there have zeros, and add nothing since their rows are zeros too.
  constexpr int words = Block::own_rows / 32;
  const auto read = [&](int stage, int first) {
    block.template read<passing>(block.passing(stage, 0), at.q, P::q(), first, P::queries);
    block.template read<passing>(block.passing(stage, 1), at.dy, P::dy(), first, P::queries);
    block.read_biases(stage, at.bias, first);
#pragma unroll
    for (int i = static_cast<int>(threadIdx.x); i < (2 + (P::drops ? words : 0)) * passing;
         i += Block::layout.threads) {
      const int query = first + i % passing, word = i / passing - 2;
      bool is_there = query < P::queries;
      const int64 row = block.head() * P::queries + (is_there ? query : 0);
      const void* from = word == -2 ? at.log_sum + row : at.products + row;
      if (word >= 0) {
        const int own = block.first() / 32 + word;
        is_there = is_there && own < words_of_a_query<P>;
        from = at.kept + row * words_of_a_query<P> + (is_there ? own : 0);
      }
      copy_word_ahead_or_zero(block.words(stage) + i, from, is_there);
    }
  };
  const auto work = [&](int stage, int first) {
    const Rows q = block.passing(stage, 0), dy = block.passing(stage, 1);
#pragma unroll 1
    for (int part = 0; part < passing; part += step) {
      if (first + part >= P::queries) break;
      typename Block::Scores weights, gradients;
      block.multiply_rows(weights, block.own(0), q, part);
      block.scale(weights, at.bias, stage, first + part, part);
      block.multiply_rows(gradients, block.own(1), dy, part);
#pragma unroll
      for (int tile = 0; tile < tiles; ++tile) {
        // All rows of a tile are in one word.
        const int own = block.first_row() + tile * 16, bit = own % 32 + block.lane() / 4;
#pragma unroll
        for (int column = 0; column < step / 8; ++column) {
          const uint32* at_queries = block.words(stage) + part + Block::column(block.lane(), column, 0);
          const auto log_sums = load<2>(reinterpret_cast<const float*>(at_queries));
          const auto products = load<2>(reinterpret_cast<const float*>(at_queries + passing));
          Pack<uint32, 2> kept{};
          if constexpr (P::drops) kept = load<2>(at_queries + (2 + own / 32) * passing);
#pragma unroll
          for (int element = 0; element < 4; ++element) {
            float& weight = weights[tile][column][element];
            weight = power_of_two(weight - log_sums.at[element % 2] * Block::log2_e);
            weigh<P>(weight, gradients[tile][column][element], products.at[element % 2],
                     kept.at[element % 2] >> (bit + element / 2 * 8) & 1);
          }
        }
      }
      block.add_weighted(value_gradient, weights, dy, part);
      block.add_weighted(key_gradient, gradients, q, part);
    }
  };
  go_over_passing(block, read, work);
  multiply_all(key_gradient, P::scale);
  multiply_all(value_gradient, P::factor);
  block.write(at.dk, P::dk(), block.own(0), key_gradient);
  block.write(at.dv, P::dv(), block.own(1), value_gradient);
}

}  // namespace tessera
