#include "tessera/base/text.h"

#include <cmath>

#include <gtest/gtest.h>

#include "support/comma_locale.h"

namespace tessera {
namespace {

TEST(Text, ReadsNumbersThatAreWhole) {
  EXPECT_EQ(parse_real("0.25"), 0.25);
  EXPECT_EQ(parse_real("-1e-3"), -1e-3);
  EXPECT_EQ(parse_real("5e-324"), 5e-324);
  EXPECT_EQ(parse_real("inf"), INFINITY);
  EXPECT_TRUE(std::isnan(parse_real("nan").value()));
  for (const char* text : {"", "x", "0.25x", "0,25", " 1", "+1", "1e999", "0x10"})
    EXPECT_FALSE(parse_real(text).has_value()) << text;
}

TEST(Text, ReadsIntegersThatAreWhole) {
  EXPECT_EQ(parse_integer("0"), 0);
  EXPECT_EQ(parse_integer("-12"), -12);
  EXPECT_EQ(parse_integer("9223372036854775807"), INT64_MAX);
  for (const char* text : {"", "-", "x", "12x", "1.0", " 1", "+1", "0x10", "9223372036854775808"})
    EXPECT_FALSE(parse_integer(text).has_value()) << text;
}

TEST(Text, ReadsNumbersWithAPointInEveryLocale) {
  const testing::CommaLocale locale;
  ASSERT_EQ(std::strtod("0.25", nullptr), 0);
  EXPECT_EQ(parse_real("0.25"), 0.25);
  EXPECT_FALSE(parse_real("0,25").has_value());
}

TEST(Text, SuggestsNothingForWhatIsNoName) {
  EXPECT_EQ(nearest_name("sdg", {"sgd", "lars"}), "sgd");
  EXPECT_EQ(nearest_name(std::string(300, 's'), {std::string(299, 's')}), "");
}

}  // namespace
}  // namespace tessera
