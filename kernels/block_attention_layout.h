// Warps and shared memory of block_attention.cuh and block_attention_gradient.cuh.
#pragma once

#include "layout.h"

namespace tessera {

// A block has rows of its own, queries or keys, and goes over those of the other kind, some at a time, which
// are on their way while it works with the ones before.
struct BlockAttentionLayout {
  static constexpr LayoutSize warps = 4;
  static constexpr LayoutSize threads = 32 * warps;
  static constexpr LayoutSize passing_rows = 64;
  static constexpr LayoutSize stages = 2;  // of these: on their way, and in work
  static constexpr LayoutSize widest = 128;
  static constexpr LayoutSize padding = 8;  // elements after each row: no two of 8 share a bank
  static constexpr LayoutSize element_size = 2;

  LayoutSize queries, keys, width;
  LayoutSize row_tiles;  // of 16 rows each, of a warp

  constexpr LayoutSize own_rows() const { return 16 * warps * row_tiles; }
  constexpr LayoutSize query_blocks() const { return (queries + own_rows() - 1) / own_rows(); }
  constexpr LayoutSize key_blocks() const { return (keys + own_rows() - 1) / own_rows(); }

  // In elements.
  constexpr LayoutSize own_elements() const { return own_rows() * (width + padding); }
  constexpr LayoutSize passing_elements() const { return passing_rows * (width + padding); }
  // Whether the bias is read into shared memory: its rows are whole accesses.
  constexpr bool brings_bias() const { return keys * element_size % 16 == 0; }
  // Of the bias of what passes by: the rows are queries.
  constexpr LayoutSize bias_elements(bool own_queries) const {
    return own_queries ? own_rows() * (passing_rows + padding) : passing_rows * (own_rows() + padding);
  }
  // Of the queries that pass by: sums of weights, products, and words of the weights that stay.
  constexpr LayoutSize query_words() const { return passing_rows * (2 + own_rows() / 32); }

  // Of `own` operands of the block and two that pass by; with a bias, and with words of queries.
  constexpr LayoutSize bytes(LayoutSize own, bool own_queries, bool bias, bool words) const {
    constexpr LayoutSize word_size = 4;
    const LayoutSize passing =
        2 * passing_elements() + (bias && brings_bias() ? bias_elements(own_queries) : 0);
    return (own * own_elements() + stages * passing) * element_size +
           (words ? stages * query_words() * word_size : 0);
  }
};

}  // namespace tessera
