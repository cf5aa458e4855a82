#include "tessera/graph/dimension.h"

#include <limits>

#include <gtest/gtest.h>

#include "support/expect_error.h"

namespace tessera {
namespace {

const Dimension kBatch = Dimension::symbol("batch");
const Dimension kTokens = Dimension::symbol("tokens");

TEST(Dimension, EqualExtentsCompareEqual) {
  EXPECT_EQ(kBatch * kTokens, kTokens * kBatch);
  EXPECT_EQ((kBatch + 1) * 2, Dimension(2) + kBatch * 2);
  EXPECT_EQ(kBatch - kBatch, Dimension(0));
  EXPECT_FALSE(kBatch == kTokens);
  EXPECT_FALSE(kBatch == Dimension(1));
}

TEST(Dimension, TextReadsBack) {
  for (const Dimension& dimension :
       {Dimension(7), kBatch, kBatch * kTokens * 2 + 1, (kBatch + 1).floor_divide(2), kBatch * 3 - kTokens,
        ((kBatch + 3).floor_divide(2) + 5).floor_divide(4)}) {
    EXPECT_EQ(parse_dimension(dimension.to_string()), dimension) << dimension.to_string();
  }
  EXPECT_EQ((kBatch * kTokens * 2 + 1).to_string(), "2*batch*tokens + 1");
  EXPECT_EQ((kBatch + 1).floor_divide(2).to_string(), "floor(batch + 1, 2)");
}

TEST(Dimension, RefusesOtherText) {
  for (const char* text : {"", "2*", "a b", "floor(a, 0)", "floor(a)", "(a", "99999999999999999999"}) {
    EXPECT_ERROR(parse_dimension(text), ErrorCode::invalid_graph, "dimension");
  }
  EXPECT_ERROR(parse_dimension(std::string(5000, '(')), ErrorCode::invalid_graph, "dimension");
}

TEST(Dimension, RefusesExtentsBeyond64Bits) {
  constexpr int64_t kHuge = int64_t{1} << 62;
  EXPECT_ERROR(parse_dimension("-5167760026245616980*6"), ErrorCode::invalid_graph, "64 bits");
  EXPECT_ERROR(kBatch * kHuge * 4, ErrorCode::invalid_graph, "64 bits");
  EXPECT_ERROR(kBatch * kHuge + kBatch * kHuge, ErrorCode::invalid_graph, "64 bits");
  EXPECT_ERROR(Dimension(-kHuge) - Dimension(kHuge), ErrorCode::invalid_graph, "64 bits");
  EXPECT_EQ((Dimension(kHuge) - Dimension(1) + Dimension(kHuge)).value(),
            std::numeric_limits<int64_t>::max());
}

// Multiplied out it would have 2^26 terms.
TEST(Dimension, RefusesProductsThatExplode) {
  std::string text = "(a + b)";
  for (int i = 0; i < 25; ++i) text += fmt::format("*(a{0} + b{0})", i);
  EXPECT_ERROR(parse_dimension(text), ErrorCode::invalid_graph, "more than 256 terms");
  Dimension sum;
  for (int i = 0; i < 256; ++i) sum = sum + Dimension::symbol(fmt::format("s{}", i));
  EXPECT_ERROR(sum + Dimension::symbol("t"), ErrorCode::invalid_graph, "more than 256 terms");
  const Dimension cube = (kBatch + 1) * (kTokens + 1) * (kBatch * kTokens + 1);
  EXPECT_EQ(parse_dimension(cube.to_string()), cube);
}

TEST(Dimension, RefusesFloorsThatExplode) {
  // Each level holds the one before three times.
  const auto level = [](const Dimension& x) { return (x * x + x + 1).floor_divide(2); };
  const auto levels = [&](int count) {
    Dimension x = kBatch;
    for (int i = 0; i < count; ++i) x = level(x);
    return x;
  };
  EXPECT_EQ(parse_dimension(levels(5).to_string()), levels(5));
  EXPECT_ERROR(levels(30), ErrorCode::invalid_graph, "characters");
  Dimension deep = kBatch;
  for (size_t i = 0; i < Dimension::kMaximumFloors; ++i) deep = Dimension(0) - (deep + 1).floor_divide(3);
  EXPECT_EQ(parse_dimension(deep.to_string()), deep);
  EXPECT_ERROR((deep + 1).floor_divide(3), ErrorCode::invalid_graph, "nests more than 40");
}

TEST(Dimension, FloorDivisionKeepsWhatDivides) {
  EXPECT_EQ((kBatch * 4 + 2).floor_divide(2), kBatch * 2 + 1);
  EXPECT_EQ((kBatch * 4 + 3).floor_divide(2), kBatch * 2 + 1);
  EXPECT_EQ(Dimension(-3).floor_divide(2), Dimension(-2));
  // The least number that a dimension has, than which -4294967299 times the divisor is still less.
  constexpr int64_t kLeast = -std::numeric_limits<int64_t>::max();
  constexpr int64_t kDivisor = (int64_t{1} << 31) - 1;
  EXPECT_EQ((kBatch * 3 + kLeast).floor_divide(kDivisor),
            (kBatch * 3 + (kDivisor - 1)).floor_divide(kDivisor) - 4294967299);
}

// A window of 3 with strides of 2 and one element of padding, and every second element.
TEST(Dimension, FloorDivisionIsOneFormWhicheverWayItCameToBe) {
  EXPECT_EQ((kTokens - 1).floor_divide(2) + 1, (kTokens + 1).floor_divide(2));
  EXPECT_EQ((kTokens + 7).floor_divide(3).to_string(), "floor(tokens + 1, 3) + 2");
  for (const int64_t tokens : {1, 2, 7}) {
    const Dimension extent = (kTokens - 5).floor_divide(4);
    EXPECT_EQ(extent.substitute({{"tokens", tokens}}), Dimension(tokens - 5).floor_divide(4));
  }
}

TEST(Dimension, DividesExactlyOrNotAtAll) {
  EXPECT_EQ((kBatch * kTokens * 6).divide_exactly(kTokens * 2), kBatch * 3);
  EXPECT_FALSE((kBatch * 6 + 1).divide_exactly(2).has_value());
  EXPECT_FALSE(kBatch.divide_exactly(kTokens).has_value());
}

TEST(Dimension, SubstitutesInsideFloors) {
  const Dimension halved = (kBatch + 1).floor_divide(2) * kTokens;
  EXPECT_EQ(halved.substitute({{"batch", 6}}), kTokens * 3);
  EXPECT_EQ(halved.substitute({{"batch", 6}, {"tokens", 10}}).value(), 30);
  EXPECT_ERROR(halved.value(), ErrorCode::invalid_argument, "specialize");
  std::set<std::string> symbols;
  halved.collect_symbols(symbols);
  EXPECT_EQ(symbols, (std::set<std::string>{"batch", "tokens"}));
}

TEST(SymbolicShape, BroadcastsASymbolAgainstItselfAndOne) {
  EXPECT_EQ(broadcast_shapes(SymbolicShape{kBatch, 1}, SymbolicShape{1, 5}), (SymbolicShape{kBatch, 5}));
  EXPECT_ERROR(broadcast_shapes(SymbolicShape{kBatch}, SymbolicShape{5}), ErrorCode::invalid_graph, "batch");
}

}  // namespace
}  // namespace tessera
