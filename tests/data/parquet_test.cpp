#include "tessera/data/parquet.h"

#include <cmath>
#include <cstdlib>

#include <gtest/gtest.h>

#include "tessera/base/file.h"
#include "tessera/compile/plugin.h"
#include "tessera/data/tables.h"
#include "tessera/data/tokenize.h"

#include "support/expect_error.h"
#include "support/temporary_folder.h"
#include "test_folder.h"

namespace tessera::data {
namespace {

using Texts = std::vector<std::string>;

constexpr auto kInvalid = ErrorCode::invalid_file;
const std::filesystem::path kGolden = TESSERA_TEST_FOLDER "/golden";

class Parquet : public ::testing::Test {
 protected:
  // Arrow is an extra that a build may lack, and then there is no reader to test; CI installs it.
  void SetUp() override {
    if (!std::filesystem::exists(plugin_path("parquet")))
      GTEST_SKIP() << "built without Parquet: tools/setup extra";
  }
};

Texts cells_of(const TextColumn& column) {
  Texts cells;
  for (const int32_t code : column.codes) cells.push_back(column.values.at(static_cast<size_t>(code)));
  return cells;
}

Texts cells_of(const std::string& file, const std::string& column) {
  return cells_of(read_parquet(kGolden / file, {column}).at(0));
}

// Three row groups, of which the last has one row.
TEST_F(Parquet, GivesEachTypeAsATableOfTextHasIt) {
  const auto cells = [](const char* column) { return cells_of("types.parquet", column); };
  const auto whole = [](const char* least, const char* most) {
    return Texts{least, "", most, "0", "1", "7", "65"};
  };
  EXPECT_EQ(cells("int8"), whole("-128", "127"));
  EXPECT_EQ(cells("int16"), whole("-32768", "32767"));
  EXPECT_EQ(cells("int32"), whole("-2147483648", "2147483647"));
  EXPECT_EQ(cells("int64"), whole("-9223372036854775808", "9223372036854775807"));
  EXPECT_EQ(cells("uint8"), whole("0", "255"));
  EXPECT_EQ(cells("uint16"), whole("0", "65535"));
  EXPECT_EQ(cells("uint32"), whole("0", "4294967295"));
  EXPECT_EQ(cells("uint64"), whole("0", "18446744073709551615"));
  EXPECT_EQ(cells("float32"), (Texts{"0.1", "", "2", "-1e-07", "inf", "nan", "3.25"}));
  EXPECT_EQ(cells("float64"), (Texts{"0.1", "", "2", "-1e-07", "inf", "nan", "3.25"}));
  EXPECT_EQ(cells("truth"), (Texts{"1", "", "0", "1", "1", "0", "0"}));
  const Texts texts{"", "", "a, \"b\"\n", "Straße", "x", "x", "\u6c34"};
  for (const char* column : {"text", "large_text", "category"}) EXPECT_EQ(cells(column), texts) << column;
  EXPECT_EQ(cells("decimal"), (Texts{"-0.05", "", "1234567.89", "0.00", "1.00", "2.00", "3.00"}));
  EXPECT_EQ(cells("day"),
            (Texts{"1969-12-31", "", "2024-02-29", "2024-02-01", "2024-02-02", "2024-02-03", "2024-02-04"}));
  EXPECT_EQ(cells("moment").at(2), "2024-02-29 13:05:09.250000");
  EXPECT_EQ(cells("nothing"), Texts(7));
  EXPECT_EQ(cells("after"),
            (Texts{"0", "1", "2", "3", "4", "5", "6"}));  // columns of several parts stand before it
}

// Halves are what they are in fp32; what is missing or no number is NaN, as in a table of text.
TEST_F(Parquet, GivesNumbersWithNaNForWhatIsMissing) {
  const std::vector<double> halves = read_parquet(kGolden / "types.parquet", {"float16"})[0].numbers();
  EXPECT_EQ(static_cast<float>(halves[0]), 0.0999755859375F);
  EXPECT_TRUE(std::isnan(halves[1]) && std::isinf(halves[4]) && std::isnan(halves[5]));
  EXPECT_EQ(halves[6], 3.25);
  const std::vector<double> decimals = read_parquet(kGolden / "types.parquet", {"decimal"})[0].numbers();
  EXPECT_EQ(decimals[0], -0.05);
  EXPECT_TRUE(std::isnan(decimals[1]));
}

TEST_F(Parquet, GivesTheColumnsAskedForInThatOrderWithEachTextOnce) {
  const std::vector<TextColumn> columns = read_parquet(kGolden / "types.parquet", {"text", "int8"});
  ASSERT_EQ(columns.size(), 2U);
  EXPECT_EQ(columns[0].name, "text");
  EXPECT_EQ(columns[0].values, (Texts{"", "a, \"b\"\n", "Straße", "x", "\u6c34"}));
  EXPECT_EQ(columns[0].codes, (std::vector<int32_t>{0, 0, 1, 2, 3, 3, 4}));
  EXPECT_EQ(columns[1].name, "int8");
  EXPECT_TRUE(read_parquet(kGolden / "types.parquet", {}).empty());
}

// Pages of 512 bytes with checksums, three row groups; by the formulas of make_parquet.py.
TEST_F(Parquet, ReadsEveryCompressionAndEncoding) {
  Texts texts, numbers, truths;
  for (int i = 0; i < 600; ++i) {
    const bool is_null = i % 7 == 3;
    texts.push_back(is_null ? "" : fmt::format("text {}", i % 50));
    numbers.push_back(is_null ? "" : fmt::format("{}", i * i % 1000 - 500));
    truths.push_back(is_null ? "" : i % 3 == 0 ? "1" : "0");
  }
  for (const char* column : {"NONE", "SNAPPY", "GZIP", "ZSTD", "LZ4", "BROTLI", "PLAIN",
                             "DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY"})
    EXPECT_EQ(cells_of("packed.parquet", fmt::format("text {}", column)), texts) << column;
  for (const char* column : {"dictionary", "PLAIN", "DELTA_BINARY_PACKED", "BYTE_STREAM_SPLIT"})
    EXPECT_EQ(cells_of("packed.parquet", fmt::format("number {}", column)), numbers) << column;
  for (const char* column : {"PLAIN", "RLE"})
    EXPECT_EQ(cells_of("packed.parquet", fmt::format("truth {}", column)), truths) << column;
}

TEST_F(Parquet, ReadsTheFilesOfAFolderOneAfterAnother) {
  EXPECT_EQ(cells_of("texts", "body"),
            (Texts{"One.", "  ", "Another, longer text.", "The third text.\n\nOf two paragraphs.", ""}));
  EXPECT_EQ(cells_of("texts", "id"), (Texts{"0", "1", "2", "0", "1"}));
  const testing::TemporaryFolder folder;
  write_file(folder / "text", "none");
  EXPECT_ERROR(read_parquet(folder.path(), {"body"}), ErrorCode::io, "holds no .parquet files");
}

TEST_F(Parquet, IsATableOfRecipes) {
  const TableDescription& kind = tables().get("parquet");
  Options options;
  options.set("path", (kGolden / "texts").string());
  EXPECT_EQ(cells_of(kind.open(options, {"id"}).at(0)), (Texts{"0", "1", "2", "0", "1"}));
  options.set("path", "");
  EXPECT_EQ(kind.check(options).size(), 1U);
}

TEST_F(Parquet, NamesWhatIsWrong) {
  const auto read = [](const Texts& columns) { return read_parquet(kGolden / "types.parquet", columns); };
  EXPECT_ERROR(read({"texts"}), ErrorCode::invalid_argument, "types.parquet", "no column 'texts'", "'text'");
  EXPECT_ERROR(read({"text", "text"}), ErrorCode::invalid_argument, "'text' is asked for twice");
  EXPECT_ERROR(read({"bytes"}), ErrorCode::invalid_argument, "'bytes' is binary, expected numbers");
  EXPECT_ERROR(read({"list"}), ErrorCode::invalid_argument, "'list' is list<");
  EXPECT_ERROR(read({"parts"}), ErrorCode::invalid_argument, "'parts' is struct<text: string>");
  EXPECT_ERROR(read({"map"}), ErrorCode::invalid_argument, "'map' is map<string, int64");
  const testing::TemporaryFolder folder;
  EXPECT_ERROR(read_parquet(folder / "none.parquet", {"a"}), ErrorCode::io, "none.parquet");
  write_file(folder / "text.parquet", "a,b\n1,2\n and so on\n");
  EXPECT_ERROR(read_parquet(folder / "text.parquet", {"a"}), kInvalid, "text.parquet", "magic bytes");
}

// Wherever it ends, and whichever byte of a page is another: pages have checksums.
TEST_F(Parquet, RefusesWhatIsTruncatedOrCorrupt) {
  const std::string whole = read_text_file(kGolden / "packed.parquet");
  const auto parse = [](const std::string& text) {
    return parse_parquet(as_bytes(text), {"text ZSTD", "number PLAIN"}, "x.parquet");
  };
  EXPECT_EQ(parse(whole).at(1).codes.size(), 600U);
  for (size_t size = 0; size < whole.size(); size += size < 100 ? 1 : 997)
    EXPECT_ERROR(parse(whole.substr(0, size)), kInvalid, "x.parquet");
  int refused = 0;
  for (size_t place = 4; place < whole.size(); place += 211) {
    std::string other = whole;
    other[place] = static_cast<char>(other[place] ^ 0x55);
    try {
      parse(other);
    } catch (const Error& error) {
      const std::string message = error.what();
      EXPECT_EQ(message.rfind("x.parquet", 0), 0U) << message;
      EXPECT_EQ(message.find('\n'), std::string::npos) << message;
      ++refused;
    }
  }
  EXPECT_GT(refused, 10);  // of those in the two columns and in the file's description
}

TEST_F(Parquet, TakesNoMoreMemoryThanItMay) {
  const std::string whole = read_text_file(kGolden / "packed.parquet");
  EXPECT_ERROR(parse_parquet(as_bytes(whole), {"text ZSTD"}, "x.parquet", 1000), ErrorCode::out_of_memory,
               "x.parquet");
  EXPECT_EQ(parse_parquet(as_bytes(whole), {"text ZSTD"}, "x.parquet", 1 << 20)[0].codes.size(), 600U);
}

Texts documents_of(const std::vector<std::filesystem::path>& files, const CorpusOptions& options) {
  Texts documents;
  for_each_document(files, options,
                    [&](const std::vector<std::string_view>& texts) { documents.emplace_back(texts.at(0)); });
  return documents;
}

TEST_F(Parquet, IsACorpusOfTexts) {
  const Texts texts{"One.", "Another, longer text.", "The third text.\n\nOf two paragraphs."};
  for (const int64_t part : {1, 60, 1 << 20}) {
    EXPECT_EQ(documents_of({kGolden / "texts"},
                           {.documents = DocumentKind::parquet, .field = "body", .part_bytes = part}),
              texts)
        << part;
  }
  const CorpusOptions of_numbers{.documents = DocumentKind::parquet, .field = "id"};
  EXPECT_ERROR(documents_of({kGolden / "texts/a.parquet"}, of_numbers), ErrorCode::invalid_argument,
               "a.parquet", "'id' is int64, expected texts");
  EXPECT_ERROR(documents_of({kGolden / "texts"}, {.documents = DocumentKind::parquet}),
               ErrorCode::invalid_argument, "no column 'text'");
}

TEST(ParquetPlugin, IsMissedByAClearError) {
  const testing::TemporaryFolder folder;
  setenv("TESSERA_PLUGIN_PATH", folder.path().c_str(), 1);
  EXPECT_ERROR(read_parquet(kGolden / "types.parquet", {"text"}), ErrorCode::unsupported, "types.parquet",
               "no reader of Parquet", "tools/setup extra");
  unsetenv("TESSERA_PLUGIN_PATH");
}

}  // namespace
}  // namespace tessera::data
