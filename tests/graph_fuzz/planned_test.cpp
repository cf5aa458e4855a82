// Random graphs for cards that are not there: their plans hold, and every kernel's text is one that the
// compiler takes.
#include <chrono>
#include <unordered_set>

#include <gtest/gtest.h>

#include "tessera/compile/executable.h"

#include "device/cuda/device.h"
#include "device/cuda/module_cache.h"
#include "graph_fuzz/configuration.h"
#include "graph_fuzz/random_graph.h"
#include "graph_fuzz/seeds.h"

namespace tessera::testing {
namespace {

size_t occurrences(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++count;
  return count;
}

// Compiles texts by NVRTC, each once, as long as that takes no more than so large a share of all the time.
class TextCompiler {
 public:
  explicit TextCompiler(double share) : share_(share) {}

  std::string check(const std::string& source, int architecture) {
    if (!seen_.insert(source).second) return "";
    ++texts_;
    // Kernels are launched before what they read is written.
    if (occurrences(source, "__global__") != occurrences(source, "griddepcontrol.wait"))
      return "a kernel does not wait for the one before it:\n" + source;
    if (compiling_ > share_ * seconds_since(start_)) return "";
    const auto begin = Clock::now();
    std::string message;
    try {
      cuda::compile_source(source, architecture);
      ++compiled_;
    } catch (const std::exception& error) {
      message = error.what();
    }
    compiling_ += seconds_since(begin);
    return message;
  }

  size_t texts() const { return texts_; }
  size_t compiled() const { return compiled_; }

 private:
  static double seconds_since(Clock::time_point begin) {
    return std::chrono::duration<double>(Clock::now() - begin).count();
  }

  double share_;
  const Clock::time_point start_ = Clock::now();
  double compiling_ = 0;
  std::unordered_set<std::string> seen_;
  size_t texts_ = 0;
  size_t compiled_ = 0;
};

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
  try_seeds("GraphFuzz.IsPlannedForGpus", 20, [&](uint64_t seed) { return check_seed(seed, compiler); });
  RecordProperty("texts", static_cast<int>(compiler.texts()));
  RecordProperty("compiled", static_cast<int>(compiler.compiled()));
  EXPECT_GE(compiler.texts(), 1U);
}

}  // namespace
}  // namespace tessera::testing
