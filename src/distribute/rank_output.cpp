#include "tessera/distribute/rank_output.h"

#include <cerrno>
#include <cstdio>
#include <cstring>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "tessera/base/error.h"
#include "tessera/base/log.h"

namespace tessera::distribute {

void open_rank_log(const std::filesystem::path& folder, int64_t rank) {
  const std::filesystem::path path = folder / fmt::format("rank-{}.log", rank);
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  require(file >= 0, ErrorCode::io, "{}: {}", path.string(), std::strerror(errno));
  ::dprintf(file, "rank %lld is process %d\n", static_cast<long long>(rank), ::getpid());
  if (rank == 0) {
    add_log_file(path);
  } else {
    std::fflush(stdout);
    std::fflush(stderr);
    ::dup2(file, STDOUT_FILENO);
    ::dup2(file, STDERR_FILENO);
  }
  ::close(file);
}

}  // namespace tessera::distribute
