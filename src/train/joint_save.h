// A checkpoint that all ranks write together, into one file.
#pragma once

#include <filesystem>
#include <functional>

#include "tessera/compile/communicator.h"
#include "tessera/train/checkpoint.h"

namespace tessera::train {

// Each rank writes its parts of what is shared out, and its share of the tensors that all have alike; the
// metadata are those of rank 0, which alone calls `prepare` for the path. The file appears complete or not at
// all. Throws Error(io) on every rank where any of them, or `prepare`, has thrown it, with what that one
// said. All ranks must see the path's folder.
void save_together(Communicator& communicator, const CheckpointSource& state,
                   const std::function<std::filesystem::path()>& prepare);

}  // namespace tessera::train
