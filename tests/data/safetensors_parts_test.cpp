#include "tessera/data/safetensors_parts.h"

#include <gtest/gtest.h>

#include "tessera/base/file.h"

#include "support/expect_error.h"
#include "support/temporary_folder.h"

namespace tessera::testing {
namespace {

constexpr const char* kIndexName = "model.safetensors.index.json";

// Two files with three tensors, and an index of them.
class SafetensorsPartsTest : public ::testing::Test {
 protected:
  SafetensorsPartsTest() {
    data::write_safetensors(folder_ / "one.safetensors", {{"a", number(1)}, {"c", number(3)}});
    data::write_safetensors(folder_ / "two.safetensors", {{"b", number(2)}});
    write_index(R"({"a": "one.safetensors", "b": "two.safetensors", "c": "one.safetensors"})");
  }
  static Tensor number(float value) { return Tensor::from<float>({1}, {value}); }
  void write_index(const std::string& map) {
    write_file(folder_ / kIndexName, R"({"metadata": {"total_size": 12}, "weight_map": )" + map + "}");
  }
  data::SafetensorsParts open() const { return data::SafetensorsParts::open(folder_.path()); }

  TemporaryFolder folder_;
};

TEST_F(SafetensorsPartsTest, AreReadThroughTheIndex) {
  for (const data::SafetensorsParts& parts : {open(), data::SafetensorsParts::open(folder_ / kIndexName)}) {
    EXPECT_TRUE(parts.name().ends_with(kIndexName));
    EXPECT_EQ(parts.entries().size(), 3U);
    EXPECT_EQ(parts.read("a").at(0), 1);
    EXPECT_EQ(parts.read("b").at(0), 2);
    EXPECT_EQ(parts.read("c").at(0), 3);
    EXPECT_ERROR(parts.read("d"), ErrorCode::invalid_argument, "d");
  }
}

// One file goes before an index, as in transformers.
TEST_F(SafetensorsPartsTest, MayBeOneFile) {
  data::write_safetensors(folder_ / "model.safetensors", {{"b", number(7)}});
  EXPECT_EQ(open().entries().size(), 1U);
  EXPECT_EQ(open().read("b").at(0), 7);
  EXPECT_EQ(data::SafetensorsParts::open(folder_ / "two.safetensors").read("b").at(0), 2);
}

TEST_F(SafetensorsPartsTest, NameTheirFaults) {
  write_index(R"({"a": "one.safetensors", "c": "one.safetensors", "d": "one.safetensors"})");
  EXPECT_ERROR(open(), ErrorCode::invalid_file, kIndexName, "'d'", "not in 'one.safetensors'");
  write_index(R"({"a": "one.safetensors"})");
  EXPECT_ERROR(open(), ErrorCode::invalid_file, "'c'", "does not say");
  write_index(R"({"a": "one.safetensors", "c": "one.safetensors", "b": "three.safetensors"})");
  EXPECT_ERROR(open(), ErrorCode::io, "three.safetensors");
  for (const char* elsewhere : {"../one.safetensors", "/one.safetensors", "..", ""}) {
    write_index(std::string(R"({"a": ")") + elsewhere + "\"}");
    EXPECT_ERROR(open(), ErrorCode::invalid_file, "beside the index");
  }
  write_index(R"({"a": 1})");
  EXPECT_ERROR(open(), ErrorCode::invalid_file, "expected a file's name");
  write_index("{}");
  EXPECT_ERROR(open(), ErrorCode::invalid_file, "weight_map");
  write_file(folder_ / kIndexName, "{");
  EXPECT_ERROR(open(), ErrorCode::invalid_file, "weight_map");
  EXPECT_ERROR(data::SafetensorsParts::open(folder_ / "none"), ErrorCode::io, "none");
  const TemporaryFolder empty;
  EXPECT_ERROR(data::SafetensorsParts::open(empty.path()), ErrorCode::io, "model.safetensors");
}

}  // namespace
}  // namespace tessera::testing
