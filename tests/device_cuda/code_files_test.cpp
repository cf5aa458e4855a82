// The machine code kept on disk: what is damaged or of another version is as good as not there.
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "device/cuda/module_cache.h"
#include "support/temporary_folder.h"

namespace tessera::cuda {
namespace {

class CodeFilesTest : public ::testing::Test {
 protected:
  testing::TemporaryFolder folder_;
  CodeFiles files_{folder_.path().string()};
};

TEST_F(CodeFilesTest, GiveBackWhatWasWritten) {
  const std::string code("a\0b\nc", 5);
  EXPECT_EQ(files_.read("key"), "");
  files_.write("key", code);
  EXPECT_EQ(files_.read("key"), code);
  EXPECT_EQ(files_.read("another key"), "");
}

TEST_F(CodeFilesTest, LeaveNoTemporaryFile) {
  files_.write("key", "code");
  const auto begin = std::filesystem::directory_iterator(folder_.path());
  EXPECT_EQ(std::distance(begin, std::filesystem::directory_iterator()), 1);
}

TEST_F(CodeFilesTest, IgnoreADamagedFile) {
  files_.write("key", "some machine code");
  {
    std::fstream file(files_.path("key"), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(-3, std::ios::end);
    file << '?';
  }
  EXPECT_EQ(files_.read("key"), "");
  std::filesystem::resize_file(files_.path("key"), 5);
  EXPECT_EQ(files_.read("key"), "");
}

TEST_F(CodeFilesTest, IgnoreAFileOfAnotherKey) {
  files_.write("key", "code");
  std::filesystem::rename(files_.path("key"), files_.path("other"));
  EXPECT_EQ(files_.read("other"), "");
}

TEST(CodeFiles, WithoutAFolderKeepNothing) {
  const CodeFiles files("");
  files.write("key", "code");
  EXPECT_EQ(files.read("key"), "");
}

}  // namespace
}  // namespace tessera::cuda
