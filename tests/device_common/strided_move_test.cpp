// Where a pad writes: each element of the result once, the padding value or an element of x.
#include "tessera/device/common/strided_move.h"

#include <gtest/gtest.h>

#include "tessera/graph/graph.h"
#include "tessera/graph/operator.h"

namespace tessera::testing {
namespace {

// Adds one at each place that the move writes to.
void count(const backend::StridedMove& move, std::vector<int>& written) {
  const std::vector<int64_t> strides = row_major_strides(move.shape);
  for (int64_t element = 0; element < element_count(move.shape); ++element) {
    int64_t place = move.to.offset;
    for (size_t axis = 0; axis < move.shape.size(); ++axis)
      place += element / strides[axis] % move.shape[axis] * move.to.strides[axis];
    ++written.at(static_cast<size_t>(place));
  }
}

struct PadCase {
  std::string name;
  std::string attributes;
  size_t boxes = 0;       // of the padding value
  bool overlaps = false;  // the value first, over all of the result
};

class StridedPads : public ::testing::TestWithParam<PadCase> {};

TEST_P(StridedPads, WriteEachElementOnce) {
  const auto graph = parse_graph("graph g(input %x: fp32[3, 4, 5]) {\n  %y = pad(%x) {" +
                                 GetParam().attributes + "}\n  output y = %y\n}");
  const Node& node = *graph->nodes().front();
  std::vector<int> written(static_cast<size_t>(node.output()->type().element_count()), 0);
  const std::vector<backend::StridedMove> padding = backend::padding_moves(node);
  EXPECT_EQ(padding.size(), GetParam().boxes);
  for (const backend::StridedMove& move : padding) {
    EXPECT_EQ(move.from.offset, 0);
    EXPECT_EQ(move.from.strides, std::vector<int64_t>(move.shape.size(), 0));
    count(move, written);
  }
  if (!GetParam().overlaps) count(backend::strided_moves(node).front(), written);
  EXPECT_EQ(written, std::vector<int>(written.size(), 1));
}

INSTANTIATE_TEST_SUITE_P(
    DeviceCommon, StridedPads,
    ::testing::Values(PadCase{"Nowhere", "low = [0, 0, 0], high = [0, 0, 0], interior = [0, 0, 0]"},
                      PadCase{"AtTheEndOfRows", "low = [0, 0, 0], high = [0, 0, 3], interior = [0, 0, 0]", 1},
                      PadCase{"AllAround", "low = [1, 2, 3], high = [3, 2, 1], interior = [0, 0, 0]", 6},
                      PadCase{"Cropped", "low = [-1, 2, -3], high = [1, -1, 4], interior = [0, 0, 0]", 3},
                      PadCase{"WithNothingOfIt", "low = [0, -4, 0], high = [0, 6, 1], interior = [0, 0, 0]",
                              1, true},
                      PadCase{"ToNothing", "low = [0, -4, 0], high = [0, 0, 1], interior = [0, 0, 0]"},
                      PadCase{"Between", "low = [1, 0, 0], high = [0, 0, 0], interior = [0, 2, 0]", 1, true}),
    [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace tessera::testing
