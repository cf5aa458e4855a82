// What is worth keeping from one process to the next: machine code, cuDNN's plans.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

namespace tessera::cuda {

// Bytes on disk, one file for each key. A file that is damaged, or of another key or version, is as good as
// not there. Any number of processes and threads may read and write at the same time.
class CacheFiles {
 public:
  // `suffix` ends the files' names and tells the kinds in one folder apart: "cubin". With "" for a folder
  // nothing is kept.
  CacheFiles(std::string folder, std::string suffix)
      : folder_(std::move(folder)), suffix_(std::move(suffix)) {}
  // In $TESSERA_CUDA_CACHE or ~/.cache/tessera/cuda, trimmed to 1 GiB.
  static CacheFiles standard(std::string suffix);

  // Empty when there is none, among those that are offered (artifacts.h) or on disk. `key` says all that the
  // bytes depend on.
  std::string read(const std::string& key) const;
  // To a temporary name, then renamed; failures are ignored.
  void write(const std::string& key, const std::string& bytes) const;
  std::string path(const std::string& key) const;
  // The file's name and contents, for those to whom it is given.
  std::pair<std::string, std::string> file(const std::string& key, const std::string& bytes) const;
  // Removes the files of this kind that were not read for longest, until the others take at most so many
  // bytes.
  void trim(uint64_t bytes) const;

 private:
  std::string name_of(const std::string& key) const;
  bool is_ours(const std::string& name) const;

  std::string folder_;
  std::string suffix_;
};

}  // namespace tessera::cuda
