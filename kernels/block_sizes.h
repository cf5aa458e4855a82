// Threads of a block, where a kernel's code depends on how many there are.
#pragma once

namespace tessera {

constexpr int kRowThreads = 128;             // rows.cuh
constexpr int kWeightGradientThreads = 128;  // convolution.cuh

}  // namespace tessera
