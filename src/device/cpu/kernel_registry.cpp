#include "device/cpu/kernel_registry.h"

#include <map>

#include "tessera/base/error.h"

namespace tessera::cpu {
namespace {

std::map<std::string, CpuKernels>& registry() {
  static std::map<std::string, CpuKernels> kernels;
  return kernels;
}

}  // namespace

CpuKernelRegistration::CpuKernelRegistration(CpuKernels kernels) {
  const std::string key = kernels.key;
  require(registry().emplace(key, std::move(kernels)).second, ErrorCode::internal,
          "CPU kernels of '{}' are registered twice", key);
}

KernelCandidate checked_candidate(
    const std::string& name, std::function<void(const KernelRequest& request)> check,
    std::function<std::unique_ptr<Kernel>(const KernelRequest& request)> create) {
  KernelCandidate candidate;
  candidate.name = name;
  candidate.refusal = [check = std::move(check)](const KernelRequest& request) -> std::string {
    try {
      check(request);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::unsupported) throw;
      return error.what();
    }
    return "";
  };
  candidate.create = std::move(create);
  return candidate;
}

std::string kernel_key(const Node& node) {
  return node.body() == nullptr ? node.operator_name() : "fused:" + node.attributes().text("kind");
}

const CpuKernels* find_kernels(const std::string& key) {
  const auto found = registry().find(key);
  return found == registry().end() ? nullptr : &found->second;
}

}  // namespace tessera::cpu
