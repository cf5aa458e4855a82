// The files of kernels/ are for nvcc too, and for every architecture.
#ifdef TESSERA_NVCC
#include <cstdlib>
#include <fstream>
#include <map>
#include <regex>

#include "device/cuda/device.h"
#include "device_cuda/cuda_case.h"
#include "device_cuda/plan_case.h"
#include "support/temporary_folder.h"

namespace tessera::testing {
namespace {

std::string included_by(const std::string& source) {
  static const std::regex pattern("#include \"([^\"]+)\"");
  std::string files;
  for (std::sregex_iterator at(source.begin(), source.end(), pattern), end; at != end; ++at)
    files += (*at)[1].str() + " ";
  return files;
}

// By the files that they include, one source each of the training steps of networks for a card.
std::map<std::string, std::string> sources_for(const std::string& card) {
  const auto device = Device::open("cuda:plan-" + card);
  cuda::ModuleCache& modules = dynamic_cast<cuda::CudaDevice&>(*device).context().modules();
  std::map<std::string, std::string> result;
  for (const Precision precision : {Precision::fp16, Precision::tf32}) {
    for (const std::string network : {"resnet50", "alexnet"}) {
      PassOptions passes;
      passes.precision = precision;
      passes.deterministic = false;
      const std::unique_ptr<Executable> executable = planned_training(network, 64, passes, device);
      for (const std::string& source : modules.sources()) result.emplace(included_by(source), source);
    }
  }
  return result;
}

void expect_compiled(const std::string& files, const std::string& source, const std::string& targets) {
  const TemporaryFolder folder;
  std::ofstream(folder / "generated.cu") << source;
  const std::string command =
      fmt::format("{} -std=c++17 --expt-relaxed-constexpr -fatbin {} -I{} -o {} {} > {} 2>&1", TESSERA_NVCC,
                  targets, TESSERA_KERNELS_FOLDER, (folder / "generated.fatbin").string(),
                  (folder / "generated.cu").string(), (folder / "log").string());
  if (std::system(command.c_str()) == 0) return;
  std::ifstream log(folder / "log");
  ADD_FAILURE() << files << "\n" << std::string(std::istreambuf_iterator<char>(log), {}) << "\n" << source;
}

TEST(KernelSources, CompileWithNvccForEveryArchitecture) {
  const std::string hopper = "-gencode arch=compute_90a,code=sm_90a";
  const auto common = sources_for("a100");
  EXPECT_GE(common.size(), 10U);
  for (const auto& [files, source] : common) {
    expect_compiled(files, source,
                    "-gencode arch=compute_80,code=sm_80 -gencode arch=compute_100,code=sm_100 "
                    "-gencode arch=compute_100,code=compute_100 " +
                        hopper);
  }
  size_t of_warpgroups = 0;
  for (const auto& [files, source] : sources_for("h100")) {
    if (common.contains(files)) continue;
    expect_compiled(files, source, hopper);
    ++of_warpgroups;
  }
  EXPECT_GE(of_warpgroups, 2U);
}

}  // namespace
}  // namespace tessera::testing
#endif
