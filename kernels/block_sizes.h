// Threads of a block, where a kernel's code depends on how many there are.
#pragma once

namespace tessera {

constexpr int kRowThreads = 128;             // rows.cuh, and the fewest of softmax.cuh
constexpr int kWeightGradientThreads = 128;  // convolution.cuh
constexpr int kScatterThreads = 256;         // scatter.cuh: targets of a block
constexpr int kGroupThreads = 256;           // grouped.cuh
constexpr int kSplitThreads = 256;           // split_convolution.cuh
constexpr int kFewRowThreads = 256;          // few_row_product.cuh
constexpr int kFewQueryThreads = 128;        // few_query_attention.cuh
constexpr int kPointwiseThreads = 256;       // pointwise_convolution.cuh, and the gradients of such

// scatter.cuh: updates that a block looks at together, and those of one target that it adds up.
constexpr int kScatterTile = 1024;
constexpr int kScatterPiece = 64;

// moves.cuh: what a warp moves of a row at a time.
constexpr int kRowMoveBytes = 2048;

// reduce.cuh, where it adds up what blocks left: so many threads work together on so many results, or each on
// its own.
constexpr int kCombineThreads = 256;
constexpr int kCombineResults = 8;

}  // namespace tessera
