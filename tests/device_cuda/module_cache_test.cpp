// Which kernels' texts are remembered; a planned card compiles none of them.
#include "device/cuda/codegen/module_cache.h"

#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace tessera::cuda {
namespace {

std::string text(size_t number) {
  return "// kernel " + std::to_string(number);
}

TEST(ModuleCache, GivesOneModuleForEqualTexts) {
  const Context context("h100");
  const std::shared_ptr<Module> module = context.modules().get(text(1));
  EXPECT_EQ(context.modules().get(text(1)), module);
  EXPECT_NE(context.modules().get(text(2)), module);
  EXPECT_EQ(context.modules().sources(), std::vector<std::string>{text(1)});
}

TEST(ModuleCache, ForgetsTextsThatNoKernelHolds) {
  const Context context("h100");
  for (size_t number = 0; number < 10'000; ++number) {
    context.modules().get(text(number));
    ASSERT_LE(context.modules().remembered(), ModuleCache::kUnused);
  }
}

TEST(ModuleCache, KeepsTextsThatKernelsHold) {
  constexpr size_t kHeld = 500;
  const Context context("h100");
  std::vector<std::shared_ptr<Module>> held;
  for (size_t number = 0; number < 10'000; ++number) {
    std::shared_ptr<Module> module = context.modules().get(text(number));
    if (number % 20 == 0) held.push_back(std::move(module));
    ASSERT_LE(context.modules().remembered(), 2 * held.size() + ModuleCache::kUnused);
  }
  ASSERT_EQ(held.size(), kHeld);
  EXPECT_EQ(context.modules().sources().size(), kHeld);
  for (size_t i = 0; i < kHeld; ++i) EXPECT_EQ(context.modules().get(text(20 * i)), held[i]);
}

}  // namespace
}  // namespace tessera::cuda
