#include "device/cuda/codegen/cache_files.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

#include "tessera/base/random.h"

#include "device/cuda/codegen/artifacts.h"

namespace tessera::cuda {
namespace {

namespace fs = std::filesystem;

constexpr const char* kMagic = "tessera-cache-1";

uint64_t hash(const std::string& text) {
  return hash_name(text.data(), text.size());
}

// The key's hash here has another start than that of the file's name, so that two keys of one name are told
// apart too.
std::string header_of(const std::string& key, const std::string& bytes) {
  return fmt::format("{} {} {:016x} {} {:016x}\n", kMagic, key.size(), hash("key" + key), bytes.size(),
                     hash(bytes));
}

// What a file's contents hold for the key; empty where they are damaged, or another's.
std::string bytes_of(const std::string& key, const std::string& contents) {
  const size_t end = contents.find('\n');
  if (end == std::string::npos) return "";
  std::string bytes = contents.substr(end + 1);
  return contents.compare(0, end + 1, header_of(key, bytes)) == 0 ? bytes : "";
}

std::string standard_folder() {
  if (const char* own = std::getenv("TESSERA_CUDA_CACHE")) return own;
  if (const char* cache = std::getenv("XDG_CACHE_HOME")) return std::string(cache) + "/tessera/cuda";
  const char* home = std::getenv("HOME");
  return home == nullptr ? "" : std::string(home) + "/.cache/tessera/cuda";
}

}  // namespace

CacheFiles CacheFiles::standard(std::string suffix) {
  constexpr uint64_t kBytes = uint64_t{1} << 30;
  CacheFiles files(standard_folder(), std::move(suffix));
  files.trim(kBytes);
  return files;
}

std::string CacheFiles::name_of(const std::string& key) const {
  return fmt::format("{:016x}.{}", hash(key), suffix_);
}

std::string CacheFiles::path(const std::string& key) const {
  return folder_ + "/" + name_of(key);
}

std::pair<std::string, std::string> CacheFiles::file(const std::string& key, const std::string& bytes) const {
  return {name_of(key), header_of(key, bytes) + bytes};
}

std::string CacheFiles::read(const std::string& key) const {
  std::string offered = bytes_of(key, find_offered(name_of(key)));
  if (!offered.empty() || folder_.empty()) return offered;
  std::ifstream file(path(key), std::ios::binary);
  if (!file) return "";
  std::string bytes =
      bytes_of(key, std::string((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>()));
  if (bytes.empty()) return "";
  std::error_code ignored;
  fs::last_write_time(path(key), fs::file_time_type::clock::now(), ignored);  // for trim()
  return bytes;
}

// Whole files and those that a process was killed over.
bool CacheFiles::is_ours(const std::string& name) const {
  constexpr size_t kDigits = 16;
  return name.find_first_not_of("0123456789abcdef") == kDigits &&
         name.compare(kDigits, suffix_.size() + 1, "." + suffix_) == 0;
}

void CacheFiles::trim(uint64_t bytes) const {
  struct Entry {
    fs::file_time_type last_read;
    uint64_t bytes;
    fs::path path;
  };
  std::vector<Entry> entries;
  uint64_t total = 0;
  std::error_code error;
  for (fs::directory_iterator file(folder_, error), end; !error && file != end; file.increment(error)) {
    if (!is_ours(file->path().filename().string())) continue;
    std::error_code gone;  // another process trims as well
    const uint64_t size = file->file_size(gone);
    const fs::file_time_type time = gone ? fs::file_time_type() : file->last_write_time(gone);
    if (gone) continue;
    entries.push_back({time, size, file->path()});
    total += size;
  }
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return a.last_read < b.last_read; });
  for (const Entry& entry : entries) {
    if (total <= bytes) return;
    fs::remove(entry.path, error);
    total -= entry.bytes;
  }
}

void CacheFiles::write(const std::string& key, const std::string& bytes) const {
  if (folder_.empty()) return;
  std::error_code error;
  fs::create_directories(folder_, error);
  static std::atomic<int> counter{0};
  const std::string temporary = fmt::format("{}.{}.{}", path(key), getpid(), counter++);
  {
    std::ofstream file(temporary, std::ios::binary);
    file << header_of(key, bytes) << bytes;
    if (!file.flush()) error = std::make_error_code(std::errc::io_error);
  }
  if (!error) fs::rename(temporary, path(key), error);
  if (error) fs::remove(temporary, error);
}

}  // namespace tessera::cuda
