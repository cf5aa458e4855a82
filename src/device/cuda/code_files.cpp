#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <fmt/format.h>
#include <unistd.h>

#include "tessera/base/random.h"

#include "device/cuda/module_cache.h"

namespace tessera::cuda {
namespace {

constexpr const char* kMagic = "tessera-code-1";

uint64_t hash(const std::string& text) {
  return hash_name(text.data(), text.size());
}

// Told apart from the first by its start, so that two texts of one name are told apart too.
std::string header_of(const std::string& key, const std::string& code) {
  return fmt::format("{} {} {:016x} {} {:016x}\n", kMagic, key.size(), hash("key" + key), code.size(),
                     hash(code));
}

}  // namespace

CodeFiles CodeFiles::standard() {
  if (const char* own = std::getenv("TESSERA_CUDA_CACHE")) return CodeFiles(own);
  if (const char* cache = std::getenv("XDG_CACHE_HOME"))
    return CodeFiles(std::string(cache) + "/tessera/cuda");
  const char* home = std::getenv("HOME");
  return CodeFiles(home == nullptr ? "" : std::string(home) + "/.cache/tessera/cuda");
}

std::string CodeFiles::path(const std::string& key) const {
  return fmt::format("{}/{:016x}.cubin", folder_, hash(key));
}

std::string CodeFiles::read(const std::string& key) const {
  if (folder_.empty()) return "";
  std::ifstream file(path(key), std::ios::binary);
  std::string header;
  if (!file || !std::getline(file, header)) return "";
  const std::string code((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  return header + "\n" == header_of(key, code) ? code : "";
}

void CodeFiles::write(const std::string& key, const std::string& code) const {
  if (folder_.empty()) return;
  std::error_code error;
  std::filesystem::create_directories(folder_, error);
  static std::atomic<int> counter{0};
  const std::string temporary = fmt::format("{}.{}.{}", path(key), getpid(), counter++);
  {
    std::ofstream file(temporary, std::ios::binary);
    file << header_of(key, code) << code;
    if (!file.flush()) error = std::make_error_code(std::errc::io_error);
  }
  if (!error) std::filesystem::rename(temporary, path(key), error);
  if (error) std::filesystem::remove(temporary, error);
}

}  // namespace tessera::cuda
