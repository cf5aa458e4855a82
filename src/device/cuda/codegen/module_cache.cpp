#include "device/cuda/codegen/module_cache.h"

#include <algorithm>

#include "tessera/base/error.h"

#include "device/cuda/codegen/artifacts.h"
#include "device/cuda/codegen/cache_files.h"
#include "device/cuda/codegen/kernel_headers.h"
#include "device/cuda/runtime/check.h"

namespace tessera::cuda {
namespace {

std::string compiler_version() {
  int major = 0;
  int minor = 0;
  check(nvrtc().nvrtcVersion_(&major, &minor), "asking for the version");
  return fmt::format("nvrtc {}.{}", major, minor);
}

std::string headers_text() {
  std::string text;
  for (const KernelHeader& header : kernel_headers()) text += header.text;
  return text;
}

// With the instructions that 9.0 has alone, of warpgroups.
std::string target_of(int architecture) {
  return fmt::format("sm_{}{}", architecture, architecture == 90 ? "a" : "");
}

// All that the machine code depends on.
std::string key_of(const std::string& source, int architecture) {
  static const std::string& headers = *new std::string(headers_text());  // see code_files()
  return fmt::format("{} {}\n{}\n{}", target_of(architecture), compiler_version(), headers, source);
}

// Never destroyed: the compiler's threads may be at work when the process ends.
const CacheFiles& code_files() {
  static const CacheFiles& files = *new CacheFiles(CacheFiles::standard("cubin"));
  return files;
}

}  // namespace

std::string compile_source(const std::string& source, int architecture) {
  std::vector<const char*> names;
  std::vector<const char*> texts;
  for (const KernelHeader& header : kernel_headers()) {
    names.push_back(header.name);
    texts.push_back(header.text);
  }
  const Nvrtc& compiler = nvrtc();
  nvrtcProgram program = nullptr;
  check(compiler.nvrtcCreateProgram_(&program, source.c_str(), "generated.cu", static_cast<int>(names.size()),
                                     texts.data(), names.data()),
        "creating a program");
  const std::string architecture_option = "--gpu-architecture=" + target_of(architecture);
  const char* options[] = {architecture_option.c_str(), "--std=c++17", "-default-device"};
  const nvrtcResult status = compiler.nvrtcCompileProgram_(program, 3, options);
  std::string code;
  if (status == NVRTC_SUCCESS) {
    size_t size = 0;
    check(compiler.nvrtcGetCUBINSize_(program, &size), "asking for the code's size");
    code.resize(size);
    check(compiler.nvrtcGetCUBIN_(program, code.data()), "reading the code");
    compiler.nvrtcDestroyProgram_(&program);
    return code;
  }
  size_t size = 0;
  compiler.nvrtcGetProgramLogSize_(program, &size);
  std::string log(size, '\0');
  compiler.nvrtcGetProgramLog_(program, log.data());
  compiler.nvrtcDestroyProgram_(&program);
  fail(ErrorCode::internal, "NVRTC refuses a generated kernel ({}):\n{}\n{}",
       compiler.nvrtcGetErrorString_(status), log, source);
}

std::string machine_code(const std::string& source, int architecture) {
  const std::string key = key_of(source, architecture);
  std::string code = code_files().read(key);
  if (!code.empty()) return code;
  code = compile_source(source, architecture);
  code_files().write(key, code);
  return code;
}

std::pair<std::string, std::string> machine_code_file(const std::string& source, int architecture) {
  return code_files().file(key_of(source, architecture), machine_code(source, architecture));
}

Module::~Module() {
  // What nothing ran is still being compiled, perhaps; at the end of the process that must not go on while
  // the compiler's library is torn down.
  if (module_ == nullptr && code_.valid()) code_.wait();
  if (module_ == nullptr) return;
  context_.enter();
  driver().cuModuleUnload_(module_);
}

CUfunction Module::function(const std::string& name) {
  const std::lock_guard lock(mutex_);
  const auto known = functions_.find(name);
  if (known != functions_.end()) return known->second;
  context_.enter();
  if (module_ == nullptr) {
    check(driver().cuModuleLoadData_(&module_, code_.get().data()), "loading a generated kernel");
  }
  CUfunction found = nullptr;
  check(driver().cuModuleGetFunction_(&found, module_, name.c_str()), "looking for '" + name + "'");
  return functions_[name] = found;
}

ModuleCache::ModuleCache(const Context& context)
    : context_(context), compilers_(std::make_unique<BackgroundWork>()) {}

std::shared_ptr<Module> ModuleCache::get(const std::string& source) {
  ArtifactRecording::note_source(source, context_.traits().architecture);
  const std::lock_guard lock(mutex_);
  const auto known = modules_.find(source);
  std::shared_ptr<Module> module = known == modules_.end() ? nullptr : known->second.lock();
  if (module != nullptr) return module;
  module = std::make_shared<Module>(context_, source);
  if (context_.present()) {
    std::packaged_task<std::string()> task([source, architecture = context_.traits().architecture] {
      return machine_code(source, architecture);
    });
    module->code_ = task.get_future().share();
    compilers_->add(std::packaged_task<void()>(std::move(task)));
  }
  modules_[source] = module;
  if (modules_.size() > most_) forget_unused();
  return module;
}

// At twice as many as are held, so that each costs a constant share of looking through all of them.
void ModuleCache::forget_unused() {
  std::erase_if(modules_, [](const auto& entry) { return entry.second.expired(); });
  most_ = std::max(kUnused, 2 * modules_.size());
}

size_t ModuleCache::remembered() {
  const std::lock_guard lock(mutex_);
  return modules_.size();
}

void ModuleCache::wait() {
  BackgroundWork* compilers = nullptr;
  {
    const std::lock_guard lock(mutex_);
    compilers = compilers_.get();
  }
  compilers->wait();
}

void ModuleCache::stop() {
  const std::lock_guard lock(mutex_);
  compilers_ = std::make_unique<BackgroundWork>();
}

std::vector<std::string> ModuleCache::sources() {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> result;
  for (const auto& [source, module] : modules_) {
    if (!module.expired()) result.push_back(source);
  }
  return result;
}

}  // namespace tessera::cuda
