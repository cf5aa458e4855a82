// From kernel source to loaded machine code: compiled by NVRTC in the background, kept in files.
#pragma once

#include <cstdint>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "tessera/base/background_work.h"

#include "device/cuda/runtime/context.h"

namespace tessera::cuda {

// Compiles the source, which may include the files of kernels/. Returns a cubin for the architecture. Throws
// Error(internal) with the compiler's log and the source.
std::string compile_source(const std::string& source, int architecture);
// The same by way of the files on disk.
std::string machine_code(const std::string& source, int architecture);
// The file of it, as CacheFiles::file().
std::pair<std::string, std::string> machine_code_file(const std::string& source, int architecture);

// Source that is, or will be, machine code. Shared by all kernels of the same text.
class Module {
 public:
  Module(const Context& context, std::string source) : context_(context), source_(std::move(source)) {}
  ~Module();
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  const std::string& source() const { return source_; }
  // Waits for the compiler at the first call, and loads the module. Any thread may call it, but not while it
  // records a graph for the first time.
  CUfunction function(const std::string& name);

 private:
  friend class ModuleCache;
  const Context& context_;
  std::string source_;
  std::shared_future<std::string> code_;
  std::mutex mutex_;  // guards what follows
  CUmodule module_ = nullptr;
  std::map<std::string, CUfunction> functions_;
};

class ModuleCache {
 public:
  explicit ModuleCache(const Context& context);

  // Starts to compile unless the code is known; a context without a GPU compiles nothing by itself.
  std::shared_ptr<Module> get(const std::string& source);
  // Of the modules that kernels hold now.
  std::vector<std::string> sources();
  // How many texts it remembers: no more than twice those that kernels held at some time, and kUnused.
  size_t remembered();
  static constexpr size_t kUnused = 64;
  // Waits until nothing is being compiled.
  void wait();
  // Waits for what is being compiled and drops what waits for it: before the compiler's library is unloaded
  // at the end of the process.
  void stop();

 private:
  const Context& context_;
  void forget_unused();

  std::mutex mutex_;  // guards what follows
  std::map<std::string, std::weak_ptr<Module>> modules_;
  size_t most_ = kUnused;  // as many are remembered before those that no kernel holds are forgotten
  std::unique_ptr<BackgroundWork> compilers_;
};

}  // namespace tessera::cuda
