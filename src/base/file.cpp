#include "tessera/base/file.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <new>
#include <stdexcept>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tessera/base/error.h"
#include "tessera/base/text.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

constexpr size_t kLargestTransfer = size_t{1} << 30;  // Linux moves at most 2 GiB - 4 KiB per call

std::string reason(int error) {
  return std::generic_category().message(error);
}

// Closes the descriptor at the end of a scope.
class Descriptor {
 public:
  explicit Descriptor(int value) : value_(value) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (value_ >= 0) ::close(value_);
  }
  int get() const { return value_; }
  int release() { return std::exchange(value_, -1); }

 private:
  int value_;
};

int open_for_reading(const fs::path& path, struct stat& status) {
  Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) fail(ErrorCode::io, "{}: cannot open for reading: {}", path.string(), reason(errno));
  if (::fstat(file.get(), &status) != 0)
    fail(ErrorCode::io, "{}: cannot read its size: {}", path.string(), reason(errno));
  require(!S_ISDIR(status.st_mode), ErrorCode::io, "{}: is a directory, a file was expected", path.string());
  return file.release();
}

// The contents as a std::vector<std::byte> or std::string.
template <typename Container>
Container read_whole(const fs::path& path, uint64_t maximum_bytes) {
  struct stat status {};
  const Descriptor file(open_for_reading(path, status));
  Container contents;
  // The size is a hint only: pipes and /proc say 0, and the file may change meanwhile.
  const auto hint = static_cast<uint64_t>(std::max<off_t>(status.st_size, 0));
  uint64_t filled = 0;
  while (true) {
    require(filled <= maximum_bytes && hint <= maximum_bytes, ErrorCode::invalid_file,
            "{}: larger than the {} that are allowed here", path.string(),
            format_bytes(static_cast<double>(maximum_bytes)));
    // One byte more than the file has, which shows its end without a larger buffer.
    if (filled == contents.size())
      contents.resize(std::max<uint64_t>(filled == 0 ? hint + 1 : 2 * filled, 4096));
    const size_t wanted = std::min<size_t>(contents.size() - filled, kLargestTransfer);
    const ssize_t count = ::read(file.get(), contents.data() + filled, wanted);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail(ErrorCode::io, "{}: cannot read: {}", path.string(), reason(errno));
    if (count == 0) break;
    filled += static_cast<uint64_t>(count);
  }
  contents.resize(filled);
  return contents;
}

template <typename Container>
Container read_or_say_too_large(const fs::path& path, uint64_t maximum_bytes) {
  try {
    return read_whole<Container>(path, maximum_bytes);
  } catch (const std::bad_alloc&) {
  } catch (const std::length_error&) {
  }
  fail(ErrorCode::out_of_memory, "{}: too large to be read into memory", path.string());
}

// Syncs the folder, so that the new name survives a power cut. Some file systems cannot; their word is
// enough.
int sync_folder(const fs::path& folder) {
  const Descriptor directory(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (directory.get() < 0) return errno == EACCES ? 0 : errno;  // a folder may be writable and not readable
  if (::fsync(directory.get()) == 0 || errno == EINVAL || errno == ENOTSUP || errno == EROFS) return 0;
  return errno;
}

fs::path folder_of(const fs::path& path) {
  return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

std::string temporary_prefix(const fs::path& path) {
  return path.filename().string() + ".partial-";
}

bool is_temporary_of(const fs::path& path, const std::string& name) {
  const std::string prefix = temporary_prefix(path);
  return name.starts_with(prefix) && name.size() > prefix.size() &&
         name.find_first_not_of("0123456789-", prefix.size()) == std::string::npos;
}

// A live writer holds a lock on its temporary file, so a file that can be locked is the leftover of a killed
// one.
void remove_leftovers(const fs::path& path) noexcept {
  try {
    for (const fs::directory_entry& entry : fs::directory_iterator(folder_of(path))) {
      if (!is_temporary_of(path, entry.path().filename().string())) continue;
      const Descriptor file(::open(entry.path().c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
      if (file.get() >= 0 && ::flock(file.get(), LOCK_EX | LOCK_NB) == 0) ::unlink(entry.path().c_str());
    }
  } catch (const std::exception&) {
    // An unreadable folder only means that leftovers stay.
  }
}

}  // namespace

std::vector<std::byte> read_file(const fs::path& path, uint64_t maximum_bytes) {
  return read_or_say_too_large<std::vector<std::byte>>(path, maximum_bytes);
}

std::string read_text_file(const fs::path& path, uint64_t maximum_bytes) {
  return read_or_say_too_large<std::string>(path, maximum_bytes);
}

MappedFile::MappedFile(const fs::path& path) : path_(path) {
  struct stat status {};
  Descriptor file(open_for_reading(path, status));
  require(S_ISREG(status.st_mode), ErrorCode::io, "{}: not a regular file, so it cannot be mapped",
          path.string());
  size_ = static_cast<size_t>(status.st_size);
  if (size_ > 0) {
    void* memory = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file.get(), 0);
    if (memory == MAP_FAILED) fail(ErrorCode::io, "{}: cannot map: {}", path.string(), reason(errno));
    memory_ = memory;
  }
  descriptor_ = file.release();
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      memory_(std::exchange(other.memory_, nullptr)),
      size_(std::exchange(other.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  if (this != &other) {
    close();
    path_ = std::move(other.path_);
    descriptor_ = std::exchange(other.descriptor_, -1);
    memory_ = std::exchange(other.memory_, nullptr);
    size_ = std::exchange(other.size_, 0);
  }
  return *this;
}

MappedFile::~MappedFile() {
  close();
}

void MappedFile::close() noexcept {
  if (memory_ != nullptr) ::munmap(memory_, size_);
  if (descriptor_ >= 0) ::close(descriptor_);
}

void MappedFile::copy(uint64_t offset, std::span<std::byte> target) const {
  require(offset <= size_ && target.size() <= size_ - offset, ErrorCode::invalid_argument,
          "{}: bytes {} to {} asked of a file of {} bytes", path_.string(), offset, offset + target.size(),
          size_);
  size_t done = 0;
  while (done < target.size()) {
    const size_t wanted = std::min(target.size() - done, kLargestTransfer);
    const ssize_t count =
        ::pread(descriptor_, target.data() + done, wanted, static_cast<off_t>(offset + done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail(ErrorCode::io, "{}: cannot read: {}", path_.string(), reason(errno));
    require(count > 0, ErrorCode::io, "{}: became shorter while it was being read ({} bytes, had {})",
            path_.string(), offset + done, size_);
    done += static_cast<size_t>(count);
  }
}

AtomicFile::AtomicFile(const fs::path& path) : path_(path) {
  std::error_code ignored;
  struct stat status {};
  const bool exists = ::stat(path_.c_str(), &status) == 0;
  if (exists && (S_ISCHR(status.st_mode) || S_ISFIFO(status.st_mode))) {
    open_stream();
    return;
  }
  require(!exists || S_ISREG(status.st_mode) || S_ISDIR(status.st_mode), ErrorCode::io,
          "{}: is a {}, which no file replaces", path_.string(),
          S_ISBLK(status.st_mode) ? "block device" : "socket");
  if (fs::is_symlink(path_, ignored)) {  // write where it points, so that the link stays a link
    const fs::path target = fs::weakly_canonical(path_, ignored);
    if (!ignored) path_ = target;
  }
  require(path_.has_filename() && !fs::is_directory(path_, ignored), ErrorCode::io,
          "{}: is a directory, a file was expected", path_.string());
  remove_leftovers(path_);
  open_temporary();
  if (exists) keep_owner_and_mode(status);
}

// /dev/null, a terminal or a pipe holds nothing to be left half written, and a file renamed over its name
// would take it from everybody else.
void AtomicFile::open_stream() {
  descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY);
  if (descriptor_ < 0) fail(ErrorCode::io, "{}: cannot open for writing: {}", path_.string(), reason(errno));
}

// The owner first: changing it takes bits off the mode. Who may not change it leaves the file to the present
// user.
void AtomicFile::keep_owner_and_mode(const struct stat& status) {
  if (::fchown(descriptor_, status.st_uid, status.st_gid) != 0 && errno != EPERM && errno != EINVAL)
    fail_and_remove("keep the owner", errno);
  if (::fchmod(descriptor_, status.st_mode & 0777) != 0 && errno != EPERM)
    fail_and_remove("keep the mode", errno);
}

void AtomicFile::open_temporary() {
  static std::atomic<uint64_t> counter{0};
  while (true) {
    temporary_ = folder_of(path_) / fmt::format("{}{}-{}", temporary_prefix(path_), ::getpid(), ++counter);
    descriptor_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (descriptor_ < 0 && errno == EEXIST) continue;
    if (descriptor_ < 0) fail(ErrorCode::io, "{}: cannot create: {}", path_.string(), reason(errno));
    // Between the creation and the lock another writer may have taken the file for a leftover.
    struct stat status {};
    const bool locked = ::flock(descriptor_, LOCK_EX | LOCK_NB) == 0;
    const bool lock_is_missing = !locked && errno != EWOULDBLOCK;  // a file system without locks
    if ((locked || lock_is_missing) && ::fstat(descriptor_, &status) == 0 && status.st_nlink > 0) return;
    remove_temporary();
  }
}

AtomicFile::~AtomicFile() {
  remove_temporary();
}

void AtomicFile::remove_temporary() noexcept {
  if (descriptor_ < 0) return;
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
  ::close(std::exchange(descriptor_, -1));
}

void AtomicFile::fail_and_remove(const char* action, int error) {
  remove_temporary();
  fail(ErrorCode::io, "{}: cannot {}: {}", path_.string(), action, reason(error));
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  require(descriptor_ >= 0, ErrorCode::internal, "{}: written to after it was finished", path_.string());
  while (!bytes.empty()) {
    const ssize_t count = ::write(descriptor_, bytes.data(), std::min(bytes.size(), kLargestTransfer));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail_and_remove("write", errno);
    if (count == 0) fail_and_remove("write", ENOSPC);
    bytes = bytes.subspan(static_cast<size_t>(count));
  }
}

void AtomicFile::extend(uint64_t bytes) {
  if (::ftruncate(descriptor_, static_cast<off_t>(bytes)) != 0) fail_and_remove("extend", errno);
}

void AtomicFile::commit() {
  require(descriptor_ >= 0, ErrorCode::internal, "{}: finished twice", path_.string());
  if (::fsync(descriptor_) != 0 && errno != EINVAL && errno != ENOTSUP) fail_and_remove("write", errno);
  const bool is_stream = temporary_.empty();
  if (!is_stream && ::rename(temporary_.c_str(), path_.c_str()) != 0) fail_and_remove("replace", errno);
  const int close_result = ::close(std::exchange(descriptor_, -1));
  if (close_result != 0 && errno != EINTR)
    fail(ErrorCode::io, "{}: cannot write: {}", path_.string(), reason(errno));
  if (is_stream) return;
  if (const int error = sync_folder(folder_of(path_)); error != 0)
    fail(ErrorCode::io, "{}: cannot sync its folder: {}", path_.string(), reason(error));
}

FilePatch::FilePatch(const fs::path& path)
    : path_(path), descriptor_(::open(path.c_str(), O_WRONLY | O_CLOEXEC)) {
  if (descriptor_ < 0) fail(ErrorCode::io, "{}: cannot open for writing: {}", path_.string(), reason(errno));
}

FilePatch::~FilePatch() {
  ::close(descriptor_);
}

void FilePatch::write(uint64_t offset, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::pwrite(descriptor_, bytes.data(), std::min(bytes.size(), kLargestTransfer),
                                   static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0)
      fail(ErrorCode::io, "{}: cannot write: {}", path_.string(), reason(count < 0 ? errno : ENOSPC));
    offset += static_cast<uint64_t>(count);
    bytes = bytes.subspan(static_cast<size_t>(count));
  }
}

void FilePatch::sync() {
  if (::fsync(descriptor_) != 0 && errno != EINVAL && errno != ENOTSUP)
    fail(ErrorCode::io, "{}: cannot write: {}", path_.string(), reason(errno));
}

void write_file(const fs::path& path, std::span<const std::byte> bytes) {
  AtomicFile file(path);
  file.write(bytes);
  file.commit();
}

void write_file(const fs::path& path, std::string_view text) {
  write_file(path, as_bytes(text));
}

void make_folder(const fs::path& path) {
  std::error_code error;
  const bool created = fs::create_directories(path, error);
  if (!error && !fs::is_directory(path, error)) error = std::make_error_code(std::errc::not_a_directory);
  require(!error, ErrorCode::io, "{}: cannot create the folder: {}", path.string(), error.message());
  // Files are synced with the folder that they lie in, which is of no use when that is lost itself.
  if (created) sync_folder(folder_of(path));
}

}  // namespace tessera
