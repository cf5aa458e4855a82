#include "tessera/data/csv.h"

#include <cmath>

#include <gtest/gtest.h>

#include "tessera/base/file.h"

#include "support/expect_error.h"
#include "support/temporary_folder.h"

namespace tessera::testing {
namespace {

using data::parse_csv;
using data::TextColumn;

std::vector<std::string> texts(const TextColumn& column) {
  std::vector<std::string> result;
  for (const int32_t code : column.codes) result.push_back(column.values[static_cast<size_t>(code)]);
  return result;
}

TEST(Csv, GivesTheColumnsAskedForInThatOrder) {
  const auto columns = parse_csv("a,b,c\n1,x,NA\n2.5,y,3\n-4e1,x,\n", {"c", "b", "a"}, "table");
  ASSERT_EQ(columns.size(), 3U);
  EXPECT_EQ(columns[1].name, "b");
  EXPECT_EQ(columns[1].values, (std::vector<std::string>{"x", "y"}));
  EXPECT_EQ(columns[1].codes, (std::vector<int32_t>{0, 1, 0}));
  EXPECT_EQ(columns[2].numbers(), (std::vector<double>{1, 2.5, -40}));
  const std::vector<double> numbers = columns[0].numbers();
  EXPECT_TRUE(std::isnan(numbers[0]) && std::isnan(numbers[2]));
  EXPECT_EQ(numbers[1], 3);
}

// Values between tabs have no quotes around them: one that begins with a quote is that text.
TEST(Csv, ReadsValuesBetweenTabsAsTheyStand) {
  const auto columns = parse_csv("a\tb, c\n\"one\" two\tx\n\ty, \"z\n3\t\n", {"a", "b, c"}, "table", '\t');
  EXPECT_EQ(texts(columns[0]), (std::vector<std::string>{"\"one\" two", "", "3"}));
  EXPECT_EQ(texts(columns[1]), (std::vector<std::string>{"x", "y, \"z", ""}));
}

TEST(Csv, ReadsQuotedCellsAndEveryEndOfLine) {
  const auto columns =
      parse_csv("n,\"a name\"\r\n1,\"one, \"\"two\"\"\nthree\"\r\n\r\n2,last", {"a name"}, "table");
  EXPECT_EQ(texts(columns[0]), (std::vector<std::string>{"one, \"two\"\nthree", "last"}));
}

TEST(Csv, NamesWhatIsWrong) {
  const auto parse = [](const char* text, std::vector<std::string> columns) {
    return parse_csv(text, columns, "table.csv");
  };
  EXPECT_ERROR(parse("carrier,dest\nUA,IAH\n", {"carier"}), ErrorCode::invalid_argument, "table.csv",
               "no column 'carier'", "'carrier'");
  EXPECT_ERROR(parse("a,b\n1,2\n1\n", {"a"}), ErrorCode::invalid_file, "table.csv: row 3", "1 cells",
               "names 2");
  EXPECT_ERROR(parse("a,b\n1,2,3\n", {"a"}), ErrorCode::invalid_file, "row 2", "3 cells");
  EXPECT_ERROR(parse("a,b\n1,\"2\n", {"a"}), ErrorCode::invalid_file, "row 2");
  EXPECT_ERROR(parse("a,b\n1,\"2\"3\n", {"a"}), ErrorCode::invalid_file, "row 2");
  EXPECT_ERROR(parse("", {"a"}), ErrorCode::invalid_file, "no first line");
  EXPECT_ERROR(parse("a,b\n1,2\n", {"a", "a"}), ErrorCode::invalid_argument, "'a' is asked for twice");
  const TemporaryFolder folder;
  EXPECT_ERROR(data::read_csv(folder / "missing.csv", {"a"}), ErrorCode::io, "missing.csv");
}

}  // namespace
}  // namespace tessera::testing
