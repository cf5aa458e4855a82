#include "device/cuda/cache_files.h"

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <fmt/format.h>
#include <unistd.h>

#include "tessera/base/random.h"

namespace tessera::cuda {
namespace {

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

std::string standard_folder() {
  if (const char* own = std::getenv("TESSERA_CUDA_CACHE")) return own;
  if (const char* cache = std::getenv("XDG_CACHE_HOME")) return std::string(cache) + "/tessera/cuda";
  const char* home = std::getenv("HOME");
  return home == nullptr ? "" : std::string(home) + "/.cache/tessera/cuda";
}

}  // namespace

CacheFiles CacheFiles::standard(std::string suffix) {
  return {standard_folder(), std::move(suffix)};
}

std::string CacheFiles::path(const std::string& key) const {
  return fmt::format("{}/{:016x}.{}", folder_, hash(key), suffix_);
}

std::string CacheFiles::read(const std::string& key) const {
  if (folder_.empty()) return "";
  std::ifstream file(path(key), std::ios::binary);
  std::string header;
  if (!file || !std::getline(file, header)) return "";
  const std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  return header + "\n" == header_of(key, bytes) ? bytes : "";
}

void CacheFiles::write(const std::string& key, const std::string& bytes) const {
  if (folder_.empty()) return;
  std::error_code error;
  std::filesystem::create_directories(folder_, error);
  static std::atomic<int> counter{0};
  const std::string temporary = fmt::format("{}.{}.{}", path(key), getpid(), counter++);
  {
    std::ofstream file(temporary, std::ios::binary);
    file << header_of(key, bytes) << bytes;
    if (!file.flush()) error = std::make_error_code(std::errc::io_error);
  }
  if (!error) std::filesystem::rename(temporary, path(key), error);
  if (error) std::filesystem::remove(temporary, error);
}

}  // namespace tessera::cuda
