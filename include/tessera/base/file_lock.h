// A lock on a file between processes.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace tessera {

// Held until it is destroyed or its process ends, however that ends: the lock is the kernel's (flock), the
// file is only its name, holds the number of the holder's process, and goes with the lock. Where the file
// system has no locks nobody is kept out.
class FileLock {
 public:
  // Nothing when another holds it, be it in this process. Creates the file; throws Error(io) when that fails.
  static std::optional<FileLock> try_lock(const std::filesystem::path& path);
  // The process that holds it, as far as the file says: "4711", or "".
  static std::string holder(const std::filesystem::path& path);

  FileLock(FileLock&& other) noexcept;
  FileLock& operator=(FileLock&& other) noexcept;
  ~FileLock();

 private:
  void release() noexcept;

  FileLock(std::filesystem::path path, int descriptor) : path_(std::move(path)), descriptor_(descriptor) {}

  std::filesystem::path path_;
  int descriptor_ = -1;
};

}  // namespace tessera
