#include "tessera/base/option.h"

#include <gtest/gtest.h>

#include "tessera/base/registry.h"

#include "support/expect_error.h"

namespace tessera {
namespace {

TEST(Limits, HoldAndDescribeTheirEnds) {
  EXPECT_TRUE(Limits::between(0, 1).holds(1));
  EXPECT_FALSE(Limits::fraction().holds(1));
  EXPECT_FALSE(Limits::above(0).holds(0));
  EXPECT_FALSE(Limits{}.holds(std::numeric_limits<double>::quiet_NaN()));
  EXPECT_FALSE(Limits{}.holds(std::numeric_limits<double>::infinity()));
  EXPECT_EQ(Limits::between(1, 1e6).describe(), "from 1 to 1000000");
  EXPECT_EQ(Limits::fraction().describe(), "at least 0 and below 1");
  EXPECT_EQ(Limits::above(0).describe(), "above 0");
  EXPECT_EQ(Limits{}.describe(), "");
}

TEST(Options, GiveValuesOfTheirTypes) {
  Options options;
  options.set("train.epochs", int64_t{3});
  options.set("model.hidden", std::vector<int64_t>{4, 5});
  options.set("model.name", std::string("mlp"));
  EXPECT_EQ(options.integer("train.epochs"), 3);
  EXPECT_EQ(options.get_or<int64_t>("train.batch", 7), 7);
  EXPECT_EQ(options.integers("model.blocks"), std::vector<int64_t>{});
  EXPECT_ERROR(options.real("train.epochs"), ErrorCode::internal, "'train.epochs'");
  EXPECT_ERROR(options.text("train.device"), ErrorCode::internal, "'train.device'");
  const Options model = options.section("model");
  EXPECT_EQ(model.text("name"), "mlp");
  EXPECT_EQ(model.integers("hidden"), (std::vector<int64_t>{4, 5}));
  EXPECT_FALSE(model.has("epochs"));
  options.erase("model.name");
  EXPECT_FALSE(options.has("model.name"));
}

struct Entry {
  std::string name;
  int value = 0;
};

TEST(Registry, FindsByNameAndSaysWhatIsNearest) {
  Registry<Entry> registry("metal");
  registry.add({"silver", 47});
  registry.add({"gold", 79});
  EXPECT_EQ(registry.get("gold").value, 79);
  EXPECT_EQ(registry.find("lead"), nullptr);
  EXPECT_EQ(registry.names(), (std::vector<std::string>{"gold", "silver"}));
  EXPECT_EQ(registry.all().front()->value, 79);
  EXPECT_ERROR(registry.get("sliver"), ErrorCode::invalid_argument,
               "no metal 'sliver', did you mean 'silver'");
  EXPECT_ERROR(registry.add({"gold", 1}), ErrorCode::internal, "two entries register the metal 'gold'");
}

}  // namespace
}  // namespace tessera
