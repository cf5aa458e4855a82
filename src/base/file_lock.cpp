#include "tessera/base/file_lock.h"

#include <cerrno>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tessera/base/error.h"
#include "tessera/base/file.h"

namespace tessera {
namespace {

// Whether the path still names the file of the descriptor: its last holder may have removed it between
// our opening and our locking.
bool names(const std::filesystem::path& path, int descriptor) {
  struct stat held {};
  struct stat named {};
  return ::fstat(descriptor, &held) == 0 && ::stat(path.c_str(), &named) == 0 &&
         held.st_ino == named.st_ino && held.st_dev == named.st_dev;
}

// For people alone, so that a disk without room for it is no reason to fail.
void write_process(int descriptor) {
  const std::string text = fmt::format("{}\n", ::getpid());
  if (::ftruncate(descriptor, 0) != 0) return;
  [[maybe_unused]] const ssize_t written = ::write(descriptor, text.data(), text.size());
}

}  // namespace

std::optional<FileLock> FileLock::try_lock(const std::filesystem::path& path) {
  while (true) {
    const int descriptor = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (descriptor < 0)
      fail(ErrorCode::io, "{}: cannot create: {}", path.string(), std::generic_category().message(errno));
    FileLock lock(path, descriptor);
    if (::flock(descriptor, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
      ::close(std::exchange(lock.descriptor_, -1));
      return std::nullopt;
    }
    if (names(path, descriptor)) {
      write_process(descriptor);
      return lock;
    }
    ::close(std::exchange(lock.descriptor_, -1));
  }
}

std::string FileLock::holder(const std::filesystem::path& path) {
  try {
    const std::string text = read_text_file(path, 32);
    return text.substr(0, text.find_first_not_of("0123456789"));
  } catch (const Error&) {
    return "";
  }
}

FileLock::FileLock(FileLock&& other) noexcept
    : path_(std::move(other.path_)), descriptor_(std::exchange(other.descriptor_, -1)) {}

FileLock& FileLock::operator=(FileLock&& other) noexcept {
  if (this != &other) {
    release();
    path_ = std::move(other.path_);
    descriptor_ = std::exchange(other.descriptor_, -1);
  }
  return *this;
}

FileLock::~FileLock() {
  release();
}

// Removed while it is still locked, so that it is never the file of another holder.
void FileLock::release() noexcept {
  if (descriptor_ < 0) return;
  ::unlink(path_.c_str());
  ::close(std::exchange(descriptor_, -1));
}

}  // namespace tessera
