#include "device/cuda/runtime/libraries.h"

#include <cstdlib>
#include <filesystem>
#include <mutex>

#include <dlfcn.h>

#include "tessera/base/error.h"

namespace tessera::cuda {
namespace {

namespace fs = std::filesystem;

#define TESSERA_TEXT(name) #name
#define TESSERA_SYMBOL(name) TESSERA_TEXT(name)

// Every library folder of the packages below `site`, such as .../nvidia/cudnn/lib.
void add_package_folders(const fs::path& site, std::vector<std::string>& folders) {
  std::error_code error;
  for (const auto& package : fs::directory_iterator(site / "nvidia", error)) {
    const fs::path libraries = package.path() / "lib";
    if (fs::is_directory(libraries, error)) folders.push_back(libraries.string());
  }
}

// site-packages of the virtual environment or of the interpreter on the path.
std::vector<fs::path> python_sites() {
  std::vector<fs::path> prefixes;
  if (const char* environment = std::getenv("VIRTUAL_ENV")) prefixes.emplace_back(environment);
  std::string path = std::getenv("PATH") == nullptr ? "" : std::getenv("PATH");
  for (size_t begin = 0; begin < path.size();) {
    const size_t end = std::min(path.find(':', begin), path.size());
    std::error_code error;
    const fs::path python = fs::path(path.substr(begin, end - begin)) / "python3";
    if (fs::exists(python, error)) {
      prefixes.push_back(python.parent_path().parent_path());
      break;
    }
    begin = end + 1;
  }
  std::vector<fs::path> sites;
  for (const fs::path& prefix : prefixes) {
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(prefix / "lib", error)) {
      if (!entry.path().filename().string().starts_with("python3")) continue;
      for (const char* folder : {"site-packages", "dist-packages"}) sites.push_back(entry.path() / folder);
    }
  }
  return sites;
}

void* open_one(const std::string& file) {
  return dlopen(file.c_str(), RTLD_NOW | RTLD_GLOBAL);
}

template <typename Function>
void resolve(void* library, const char* symbol, Function& function) {
  function = reinterpret_cast<Function>(find_symbol(library, symbol));
}

// Streams share so many ways to a card, eight unless the driver is told otherwise before it starts. Where a
// decoder's stream shares that of a training step, each of its launches waits until the step's whole
// recording is through (docs/experiments/074-files-decoded-beside-a-step.md). The user's own word counts.
constexpr const char* kConnectionsVariable = "CUDA_DEVICE_MAX_CONNECTIONS";
constexpr const char* kMostConnections = "32";

constexpr const char* kToolkitAdvice =
    "Install the CUDA 13 toolkit or its Python wheels, or name a folder in TESSERA_CUDA_PATH";

}  // namespace

void* open_library(const std::string& file, const std::string& advice) {
  if (const char* own = std::getenv("TESSERA_CUDA_PATH")) {
    if (void* library = open_one(fmt::format("{}/{}", own, file))) return library;
  }
  if (void* library = open_one(file)) return library;
  std::string tried = fmt::format("{} ({})", file, dlerror());
  for (const std::string& folder : library_folders()) {
    const std::string path = fmt::format("{}/{}", folder, file);
    std::error_code error;
    if (!fs::exists(path, error)) continue;
    if (void* library = open_one(path)) return library;
    tried += fmt::format("; {} ({})", path, dlerror());
  }
  fail(ErrorCode::unsupported, "{} cannot be loaded. {}. Tried {}; looked in: {}", file, advice, tried,
       fmt::join(library_folders(), ", "));
}

void* find_symbol(void* library, const char* symbol) {
  void* found = dlsym(library, symbol);
  require(
      found != nullptr, ErrorCode::unsupported,
      "the library lacks '{}': it is older than the CUDA 13 that this was built for; update the driver or "
      "the toolkit",
      symbol);
  return found;
}

std::vector<std::string> library_folders() {
  static const std::vector<std::string> folders = [] {
    std::vector<std::string> result;
    if (const char* own = std::getenv("TESSERA_CUDA_PATH")) result.emplace_back(own);
    for (const char* folder : {"/usr/local/cuda/lib64", "/usr/local/cuda/lib", "/usr/lib/x86_64-linux-gnu"}) {
      result.emplace_back(folder);
    }
    for (const fs::path& site : python_sites()) add_package_folders(site, result);
    return result;
  }();
  return folders;
}

const Driver& driver() {
  static const Driver functions = [] {
    setenv(kConnectionsVariable, kMostConnections, 0);
    void* library = open_library("libcuda.so.1",
                                 "It comes with NVIDIA's driver: install that, or run on a "
                                 "machine with a GPU");
    Driver result;
#define TESSERA_RESOLVE(name) resolve(library, TESSERA_SYMBOL(name), result.name##_);
    TESSERA_DRIVER_FUNCTIONS(TESSERA_RESOLVE)
    return result;
  }();
  return functions;
}

const Nvrtc& nvrtc() {
  static const Nvrtc functions = [] {
    void* library = open_library("libnvrtc.so.13", kToolkitAdvice);
    Nvrtc result;
    TESSERA_NVRTC_FUNCTIONS(TESSERA_RESOLVE)
    return result;
  }();
  return functions;
}

const CublasLt& cublaslt() {
  static const CublasLt functions = [] {
    void* library = open_library("libcublasLt.so.13", kToolkitAdvice);
    CublasLt result;
    TESSERA_CUBLASLT_FUNCTIONS(TESSERA_RESOLVE)
    return result;
  }();
  return functions;
}

void* cudnn_library() {
  static void* const library = [] {
    // cudnn-frontend asks for the runtime by its bare name, which the loader answers once it is loaded.
    open_library("libcudart.so.13", kToolkitAdvice);
    return open_library(
        "libcudnn.so.9",
        "Install cuDNN 9 or the wheel nvidia-cudnn-cu13, or name a folder in TESSERA_CUDA_PATH");
  }();
  return library;
}

}  // namespace tessera::cuda
