// How product_cluster.cuh divides its work, its threads and its shared memory.
#pragma once

namespace tessera {

struct ProductClusterLayout {
  bool many;   // warps beside those that multiply: 8, beside products of 128 columns at a time, or 4, of 256
  bool begun;  // there is work before the product, for the last 4 of 8

  static constexpr int rows = 128, columns = 256;  // of a block's tile of the result
  static constexpr int depth = 64;                 // of a stage: 128 bytes of each row
  static constexpr int stages = 3;
  static constexpr int blocks = 2;  // of a cluster: tiles one below the other, which share columns
  static constexpr int vector = 8;  // results that a thread ends at once

  // The first warp copies, the warpgroups after its own multiply.
  static constexpr int warpgroup = 128, halves = 2;
  constexpr int threads() const { return (many ? 4 : 3) * warpgroup; }
  constexpr int beginners() const { return begun ? warpgroup / 32 : 0; }  // warps
  constexpr int enders() const { return threads() / 32 - 1 - halves * warpgroup / 32 - beginners(); }

  // Elements of 16 bits.
  static constexpr int a_elements = rows * depth;
  static constexpr int stage_elements = a_elements + depth * columns;
  static constexpr int pitch = columns + 8;  // so that neighboring rows lie in other banks
  static constexpr int result_elements = rows * pitch;

  // What the copied tiles begin at is a multiple of this.
  static constexpr int alignment = 1024;
  static constexpr int shared_bytes =
      alignment + 2 * (stages * stage_elements + result_elements) + 3 * stages * 8;
};

}  // namespace tessera
