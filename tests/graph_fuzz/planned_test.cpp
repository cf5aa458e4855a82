// Random graphs for cards that are not there: their plans hold, and every kernel's text is one that the
// compiler takes.
#include <gtest/gtest.h>

#include "tessera/compile/executable.h"

#include "device/cuda/device.h"
#include "device_cuda/text_compiler.h"
#include "graph_fuzz/configuration.h"
#include "graph_fuzz/random_graph.h"
#include "graph_fuzz/seeds.h"

namespace tessera::testing {
namespace {

std::string check_seed(uint64_t seed, TextCompiler& compiler) {
  const Configuration configuration = draw_configuration(seed);
  const auto device = std::make_shared<cuda::CudaDevice>("plan-" + configuration.card);
  const RandomGraph own = configuration.block ? random_block(seed, BlockSize::planned, configuration.frozen)
                                              : random_graph(seed, configuration.frozen);
  const std::unique_ptr<Executable> executable = compile(*own.graph, device, configuration.options());
  verify(executable->graph());
  verify(executable->memory_plan());
  std::string text;
  for (const std::string& source : device->context().modules().sources())
    text += compiler.check(source, device->context().traits().architecture);
  return text;
}

TEST(GraphFuzz, IsPlannedForGpus) {
  TextCompiler compiler(0.5);
  try_seeds("GraphFuzz.IsPlannedForGpus", 10, [&](uint64_t seed) { return check_seed(seed, compiler); });
  RecordProperty("texts", static_cast<int>(compiler.texts()));
  RecordProperty("compiled", static_cast<int>(compiler.compiled()));
  EXPECT_GE(compiler.texts(), 1U);
}

}  // namespace
}  // namespace tessera::testing
