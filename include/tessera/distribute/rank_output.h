// The log of each rank of a run.
#pragma once

#include <cstdint>
#include <filesystem>

namespace tessera::distribute {

// FOLDER/rank-N.log: from now on this process's log lines go there too, and all else that ranks other than
// the first write to standard output and error goes there alone. Appends. Throws Error(io).
void open_rank_log(const std::filesystem::path& folder, int64_t rank);

}  // namespace tessera::distribute
