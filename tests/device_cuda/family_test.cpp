// One network at several sizes, planned for a card that is not there.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tessera/compile/executable_family.h"

namespace tessera::testing {
namespace {

// A layer of a transformer in 16 bits: attention of 4 heads and two products.
std::unique_ptr<Graph> build(const SymbolBindings& sizes) {
  return parse_graph(fmt::format(R"(graph layer(input %x: fp16[{0}, 256], parameter %w: fp16[256, 768],
      parameter %up: fp16[256, 1024], parameter %down: fp16[1024, 256]) {{
  %heads = matmul(%x, %w)
  %q, %k, %v = split(%heads) {{axis = 1, sizes = [256, 256, 256]}}
  %qh = reshape(%q) {{shape = [1, {0}, 4, 64]}}
  %kh = reshape(%k) {{shape = [1, {0}, 4, 64]}}
  %vh = reshape(%v) {{shape = [1, {0}, 4, 64]}}
  %qt = transpose(%qh) {{permutation = [0, 2, 1, 3]}}
  %kt = transpose(%kh) {{permutation = [0, 2, 1, 3]}}
  %vt = transpose(%vh) {{permutation = [0, 2, 1, 3]}}
  %a, %log_sum = attention(%qt, %kt, %vt) {{scale = 0.125}}
  %at = transpose(%a) {{permutation = [0, 2, 1, 3]}}
  %rows = reshape(%at) {{shape = [{0}, 256]}}
  %h = matmul(%rows, %up)
  %g = relu(%h)
  %y = matmul(%g, %down)
  output y = %y
}})",
                                 sizes.at("tokens")));
}

TEST(PlannedFamily, OfSixteenSizesPlansOneArena) {
  CompileOptions options;
  options.passes.frozen = true;
  ExecutableFamily family(Device::open("cuda:plan-h100"), build, options);
  std::vector<SymbolBindings> sizes;
  for (int64_t i = 1; i <= 16; ++i) sizes.push_back({{"tokens", 64 * i}});
  family.prepare(sizes);
  int64_t sum = 0;
  for (const SymbolBindings& one : sizes) sum += family.at(one)->memory_plan().peak_bytes;
  const WorkspaceNeeds needs = needs_of(family.workspace().uses());
  EXPECT_EQ(family.workspace().uses().size(), 16U);
  EXPECT_EQ(needs.shared_bytes, family.at(sizes.back())->memory_plan().peak_bytes);
  EXPECT_EQ(needs.alone_bytes, sum);
  RecordProperty("shared_bytes", std::to_string(needs.shared_bytes));
  RecordProperty("alone_bytes", std::to_string(needs.alone_bytes));
}

}  // namespace
}  // namespace tessera::testing
