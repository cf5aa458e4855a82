#include <string_view>

#include <omp.h>
#include <tessera/interface_version.h>

#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/compile/backend.h"

#include "device/cpu/device.h"
#include "device/cpu/kernel_registry.h"

namespace {

constexpr int kMostThreads = 4096;

// "threads=4", or "" for OpenMP's own choice. Not a lambda: in a program that links several backends all of
// those would have one name.
tessera::Device* create(const char* text) {
  constexpr std::string_view kThreads = "threads=";
  const std::string_view options = text;
  if (!options.empty()) {
    const std::string_view number = options.substr(std::min(kThreads.size(), options.size()));
    const int64_t threads = tessera::parse_integer(number).value_or(0);
    tessera::require(options.starts_with(kThreads) && threads > 0 && threads <= kMostThreads,
                     tessera::ErrorCode::invalid_argument,
                     "device 'cpu:{}': expected cpu:threads=N with N from 1 to {}", options, kMostThreads);
    omp_set_num_threads(static_cast<int>(threads));
  }
  auto device = std::make_unique<tessera::cpu::CpuDevice>();
  tessera::cpu::check_kernels(device->pass_target({.frozen = true}).patterns);
  return device.release();
}

}  // namespace

extern "C" {
// Found by name when the library is loaded (tessera/compile/backend.h).
extern tessera::Backend tessera_backend;
tessera::Backend tessera_backend = {TESSERA_INTERFACE_VERSION, create};
}
