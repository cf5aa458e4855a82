// Files: reading whole or mapped, and writing so that a crash, a full disk or a kill never leaves half a
// file. Every error is Error(io) that names the file and the operating system's reason.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

struct stat;

namespace tessera {

// The bytes of a text.
inline std::span<const std::byte> as_bytes(std::string_view text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

// The whole file. Throws Error(io) when it cannot be read or is a directory, Error(invalid_file) when it
// holds more than maximum_bytes.
std::vector<std::byte> read_file(const std::filesystem::path& path,
                                 uint64_t maximum_bytes = std::numeric_limits<uint64_t>::max());
std::string read_text_file(const std::filesystem::path& path,
                           uint64_t maximum_bytes = std::numeric_limits<uint64_t>::max());

// A regular file mapped read-only. Move-only.
class MappedFile {
 public:
  explicit MappedFile(const std::filesystem::path& path);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  const std::filesystem::path& path() const { return path_; }
  uint64_t size() const { return size_; }  // bytes, when it was opened

  // The mapping itself, without a copy. If another process truncates the file meanwhile, touching the lost
  // pages kills this process (SIGBUS); copy() has no such hazard.
  std::span<const std::byte> bytes() const { return {static_cast<const std::byte*>(memory_), size_}; }

  // Fills `target` from `offset` on. Throws Error(io) when the file has become too short.
  void copy(uint64_t offset, std::span<std::byte> target) const;

 private:
  void close() noexcept;

  std::filesystem::path path_;
  int descriptor_ = -1;
  void* memory_ = nullptr;
  size_t size_ = 0;
};

// Writes a file that appears under its name complete or not at all: the bytes go to a temporary name in the
// same folder ("NAME.partial-..."), commit() syncs it, renames it and syncs the folder. Destroyed without
// commit(), it leaves the folder as it was. What a killed process left of the same target is removed by the
// next writer. A file that is replaced gives its mode to the new one, and its owner where the user may do
// that. Bytes for a character device or a pipe go straight to it; a block device or a socket is refused with
// Error(io).
class AtomicFile {
 public:
  explicit AtomicFile(const std::filesystem::path& path);
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  ~AtomicFile();

  void write(std::span<const std::byte> bytes);
  void write(std::string_view text) { write(as_bytes(text)); }
  // Zeros up to that size, which may be overwritten at the temporary name. Throws Error(io) where the bytes
  // go straight to the path.
  void extend(uint64_t bytes);
  void commit();
  // Where the bytes are until commit(); empty where they go straight to the path.
  const std::filesystem::path& temporary() const { return temporary_; }

 private:
  void open_stream();
  void open_temporary();
  void keep_owner_and_mode(const struct stat& status);
  void remove_temporary() noexcept;
  [[noreturn]] void fail_and_remove(const char* action, int error);

  std::filesystem::path path_;
  std::filesystem::path temporary_;  // empty where the bytes go straight to the path
  int descriptor_ = -1;
};

// Overwrites bytes of a file that exists, wherever they stand; several processes may do so at once.
class FilePatch {
 public:
  explicit FilePatch(const std::filesystem::path& path);
  FilePatch(const FilePatch&) = delete;
  FilePatch& operator=(const FilePatch&) = delete;
  ~FilePatch();

  void write(uint64_t offset, std::span<const std::byte> bytes);
  // Returns when the bytes are on the disk.
  void sync();

 private:
  std::filesystem::path path_;
  int descriptor_ = -1;
};

// AtomicFile for contents that are at hand.
void write_file(const std::filesystem::path& path, std::span<const std::byte> bytes);
void write_file(const std::filesystem::path& path, std::string_view text);

// Creates the folder and its parents; an existing folder is fine. Throws Error(io) when something else has
// the name or a parent is not writable.
void make_folder(const std::filesystem::path& path);

}  // namespace tessera
