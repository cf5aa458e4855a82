#include "tessera/data/text.h"

#include <gtest/gtest.h>

#include "tessera/base/file.h"

#include "support/expect_error.h"
#include "support/temporary_folder.h"

namespace tessera::testing {
namespace {

TEST(Text, IsCutIntoPiecesOfItsBytes) {
  const TemporaryFolder folder;
  write_file(folder / "text", "abcdefg\xC3");
  EXPECT_TRUE(data::read_byte_windows(folder / "text", 3)
                  .identical(Tensor::from<int32_t>({2, 3}, {97, 98, 99, 100, 101, 102})));
  EXPECT_EQ(data::read_byte_windows(folder / "text", 8).at(7), 0xC3);
}

TEST(Text, OfAFolderIsThatOfItsTextFilesByName) {
  const TemporaryFolder folder;
  write_file(folder / "b", "34");
  write_file(folder / "a", "12");
  write_file(folder / "index.dat", std::string_view("5\0", 2));
  std::filesystem::create_directory(folder / "more");
  std::filesystem::create_symlink(folder / "a", folder / "c");
  EXPECT_TRUE(
      data::read_byte_windows(folder.path(), 4).identical(Tensor::from<int32_t>({1, 4}, {49, 50, 51, 52})));
}

TEST(Text, IsRefusedWhereThereIsNone) {
  const TemporaryFolder folder;
  EXPECT_ERROR(data::read_byte_windows(folder.path(), 4), ErrorCode::io, "holds no text");
  EXPECT_ERROR(data::read_byte_windows(folder / "none", 4), ErrorCode::io, "none");
  write_file(folder / "short", "abc");
  EXPECT_ERROR(data::read_byte_windows(folder / "short", 4), ErrorCode::invalid_file, "3 bytes",
               "a piece of 4");
}

}  // namespace
}  // namespace tessera::testing
