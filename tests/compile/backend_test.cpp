// Backends that are loaded: the right one, and those that are not.
#include "tessera/compile/backend.h"

#include <cmath>
#include <cstdlib>
#include <filesystem>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <tessera/interface_version.h>

#include "tessera/base/file.h"
#include "tessera/compile/executable.h"

#include "support/expect_error.h"
#include "support/temporary_folder.h"

namespace tessera::testing {
namespace {

class Backends : public ::testing::Test {
 protected:
  // Those of tests/compile/plugins/ lie beside this program.
  Backends() { look_in(std::filesystem::read_symlink("/proc/self/exe").parent_path() / "plugins"); }
  ~Backends() override { unsetenv("TESSERA_PLUGIN_PATH"); }
  Backends(const Backends&) = delete;
  Backends& operator=(const Backends&) = delete;

  static void look_in(const std::filesystem::path& folder) {
    setenv("TESSERA_PLUGIN_PATH", folder.c_str(), 1);
  }
};

TEST_F(Backends, RunGraphsWithTheirKernels) {
  const auto device = Device::open("right");
  EXPECT_EQ(device->description().model, "of a test");
  const auto graph =
      parse_graph("graph g(input %x: fp32[2]) {\n  %y = exp(%x)\n  %z = sin(%y)\n  output z = %z\n}");
  CompileOptions options;
  options.passes.fuse = false;
  const auto executable = compile(*graph, device, options);
  std::vector<std::string> kernels;
  for (const NodeReport& node : executable->nodes()) kernels.push_back(node.kernel);
  EXPECT_EQ(kernels, (std::vector<std::string>{"own.exp", "reference"}));
  executable->bind(std::make_shared<Variables>(device));
  const Tensor z = executable->run({{"x", Tensor::from<float>({2}, {0, 1})}}).at("z");
  // e rounded to fp32 by the backend's exp, within a unit in the last place of numbers below 4, and the sine.
  constexpr double kRoundings = 0x1p-22 + 0x1p-24;
  EXPECT_NEAR(z.at(0), std::sin(1.0), kRoundings);
  EXPECT_NEAR(z.at(1), std::sin(std::exp(1.0)), kRoundings);
}

TEST_F(Backends, OfAnotherTextAreRefusedByBothVersions) {
  EXPECT_ERROR(Device::open("another"), ErrorCode::unsupported, "libtessera_another.so",
               "built against the interface 0123456789ab", fmt::format("has {}", TESSERA_INTERFACE_VERSION));
}

TEST_F(Backends, ThatAreNoneAreRefused) {
  EXPECT_ERROR(Device::open("broken"), ErrorCode::unsupported, "libtessera_broken.so is no backend",
               "it lacks 'tessera_backend'");
  EXPECT_ERROR(Device::open("empty"), ErrorCode::unsupported, "libtessera_empty.so is no backend",
               "its 'tessera_backend' is empty");
  const TemporaryFolder folder;
  write_file(folder / "libtessera_text.so", "no library");
  look_in(folder.path());
  EXPECT_ERROR(Device::open("text"), ErrorCode::unsupported, "libtessera_text.so", "cannot be loaded");
}

TEST_F(Backends, HaveNamesThatAreNoPaths) {
  for (const char* name : {"nowhere", "../plugins/right", "", "Right"})
    EXPECT_ERROR(Device::open(name), ErrorCode::invalid_argument, "there is no device");
  EXPECT_ERROR(Device::open("nul"), ErrorCode::invalid_argument, "did you mean 'null'");
}

// A kernel that no node could ever reach was misspelt.
TEST_F(Backends, RefuseKernelsOfNothing) {
  EXPECT_ERROR(Device::open("right:ecp"), ErrorCode::internal, "'ecp'", "did you mean 'exp'");
  EXPECT_NE(Device::open("right:fused:cluster"), nullptr);
}

}  // namespace
}  // namespace tessera::testing
