// A cluster's body as a program for tiles: what to compute once, once per thread, and for every tile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tessera/graph/graph.h"

#include "device/cpu/cluster/cluster_loops.h"
#include "device/cpu/cluster/cluster_reduce.h"
#include "device/cpu/cluster/cluster_space.h"

namespace tessera::cpu {

// Where an operand is found.
struct Slot {
  enum class Kind : uint8_t {
    buffer,  // a register: a tile in the thread's scratch memory
    scalar,  // one element in the thread's scratch memory
    input,   // memory of input `index`, walked through by the input's strides
    fixed,   // memory of input `index`, always its first element
    output,  // memory of output `index`, walked through densely
  };
  Kind kind = Kind::buffer;
  int index = 0;
  int64_t bytes = 0;  // of one element
};

struct Instruction {
  enum class Kind : uint8_t {
    loop,    // loop(out, in, n)
    expand,  // out = the tile of input `index`, broadcast, in the input's own type
    random,  // out = uniform numbers of the tile's elements, under the counter in input `index`
  };
  Kind kind = Kind::loop;
  Loop loop = nullptr;
  bool single = false;  // n = 1: works on scalars
  int out = 0;          // slots
  int in[3] = {-1, -1, -1};
  int index = 0;
  int64_t stream = 0;
  int bits = 24;
};

struct ProgramInput {
  DataType type = DataType::fp32;
  bool raw = false;         // a random number's counter: no operand of the iteration space
  bool contiguous = false;  // walked through exactly as a dense output
  int last_read = -1;       // by which instruction of the body; beyond the body's end: by all
};

struct ProgramOutput {
  DataType type = DataType::fp32;
  bool reduction = false;
  int written = -1;  // by which instruction of the body
};

struct Program {
  IterationSpace space;  // strides of the inputs
  Tiling tiling;
  std::vector<Slot> slots;
  int buffers = 0;
  int64_t buffer_bytes = 0;           // of each
  std::vector<uint64_t> constants;    // initial contents of the scalars, 8 bytes each
  std::vector<Instruction> once;      // single, for each thread
  std::vector<Instruction> prologue;  // registers that are the same for all tiles
  std::vector<Instruction> body;
  std::vector<ProgramInput> inputs;    // as the cluster's
  std::vector<ProgramOutput> outputs;  // as the cluster's

  // The ending reduction, of the register or memory in a slot.
  bool reduces = false;
  ReductionKind reduction = ReductionKind::sum;
  DataType reduced_type = DataType::fp32;
  int reduced_slot = -1;
  int reduction_output = -1;
  int64_t results = 0;                  // elements of the result
  std::vector<int64_t> result_strides;  // per axis of the space; 0 where reduced
};

// `body` holds primitives, casts, selects, broadcasts, scalar constants and uniform random numbers of one
// iteration shape and at most one reduction of values of that shape, whose result nothing in the body reads;
// what it does not hold is refused.
Program compile_cluster(const Graph& body);

}  // namespace tessera::cpu
