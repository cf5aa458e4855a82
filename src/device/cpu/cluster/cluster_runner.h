// Runs a cluster's program on the tiles of one thread.
#pragma once

#include <cstdint>
#include <vector>

#include "tessera/base/random.h"
#include "tessera/compile/kernel.h"

#include "device/cpu/cluster/cluster_program.h"

namespace tessera::cpu {

class TileRunner {
 public:
  // Takes the thread's scratch memory; one runner per thread at a time.
  TileRunner(const Program& program, const KernelArguments& arguments);

  // All instructions of the body on one tile.
  void run(const Tile& tile);
  // Takes the tile that ran last into accumulators, which are those of the whole result.
  void reduce(const ReductionLoops& loops, const Tile& tile, char* accumulators);

 private:
  struct Moving {
    size_t slot;
    const std::vector<int64_t>* strides;  // null: as a dense tensor
    char* base;
  };

  void bind_slots();
  void execute(const Instruction& instruction, const Tile& tile, int64_t n);
  void expand(const Instruction& instruction, const Tile& tile);
  void random(const Instruction& instruction, const Tile& tile, int64_t n);

  const Program& program_;
  const KernelArguments& arguments_;
  std::vector<void*> pointers_;  // of the slots
  std::vector<Moving> moving_;
  char* buffers_;
  uint64_t* scalars_;
  bool walks_rows_ = false;  // a moving slot has strides of its own
};

}  // namespace tessera::cpu
