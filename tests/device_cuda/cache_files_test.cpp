// What is kept on disk between processes: what is damaged or of another version is as good as not there.
#include "device/cuda/codegen/cache_files.h"

#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include <gtest/gtest.h>

#include "support/temporary_folder.h"

namespace tessera::cuda {
namespace {

class CacheFilesTest : public ::testing::Test {
 protected:
  testing::TemporaryFolder folder_;
  CacheFiles files_{folder_.path().string(), "cubin"};
};

TEST_F(CacheFilesTest, GiveBackWhatWasWritten) {
  const std::string code("a\0b\nc", 5);
  EXPECT_EQ(files_.read("key"), "");
  files_.write("key", code);
  EXPECT_EQ(files_.read("key"), code);
  EXPECT_EQ(files_.read("another key"), "");
}

TEST_F(CacheFilesTest, LeaveNoTemporaryFile) {
  files_.write("key", "code");
  const auto begin = std::filesystem::directory_iterator(folder_.path());
  EXPECT_EQ(std::distance(begin, std::filesystem::directory_iterator()), 1);
}

TEST_F(CacheFilesTest, IgnoreADamagedFile) {
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

TEST_F(CacheFilesTest, IgnoreAFileOfAnotherKey) {
  files_.write("key", "code");
  std::filesystem::rename(files_.path("key"), files_.path("other"));
  EXPECT_EQ(files_.read("other"), "");
}

TEST_F(CacheFilesTest, IgnoreAFileOfAnotherKind) {
  const CacheFiles plans(folder_.path().string(), "plan");
  files_.write("key", "code");
  EXPECT_EQ(plans.read("key"), "");
  plans.write("key", "plan");
  EXPECT_EQ(files_.read("key"), "code");
  EXPECT_EQ(plans.read("key"), "plan");
}

TEST_F(CacheFilesTest, TrimsWhatWasNotReadForLongestAndNothingElse) {
  const std::string code(1000, 'c');
  for (const char* key : {"old", "read", "new"}) files_.write(key, code);
  const auto hours_ago = [](int hours) {
    return std::filesystem::file_time_type::clock::now() - std::chrono::hours(hours);
  };
  std::filesystem::last_write_time(files_.path("old"), hours_ago(2));
  std::filesystem::last_write_time(files_.path("read"), hours_ago(3));
  std::filesystem::last_write_time(files_.path("new"), hours_ago(1));
  const std::string left_over = files_.path("gone") + ".123.4";
  const std::string foreign = (folder_.path() / "notes.cubin").string();
  const CacheFiles plans(folder_.path().string(), "plan");
  plans.write("plan", code);
  for (const std::string& path : {left_over, foreign}) std::ofstream(path) << code;
  std::filesystem::last_write_time(left_over, hours_ago(4));
  EXPECT_EQ(files_.read("read"), code);
  files_.trim(1 << 20);
  EXPECT_TRUE(std::filesystem::exists(left_over));
  files_.trim(2500);
  EXPECT_FALSE(std::filesystem::exists(left_over));
  EXPECT_EQ(files_.read("old"), "");
  EXPECT_EQ(files_.read("read"), code);
  EXPECT_EQ(files_.read("new"), code);
  EXPECT_EQ(plans.read("plan"), code);
  EXPECT_TRUE(std::filesystem::exists(foreign));
  CacheFiles("", "cubin").trim(0);
}

// As two processes that compile the same at the same time.
TEST_F(CacheFilesTest, AreWholeWhoeverWritesThem) {
  const std::string first(1 << 16, 'a');
  const std::string second(1 << 15, 'b');
  files_.write("key", first);
  std::vector<std::thread> writers;
  for (const std::string* bytes : {&first, &second}) {
    writers.emplace_back([this, bytes] {
      for (int i = 0; i < 50; ++i) files_.write("key", *bytes);
    });
  }
  for (int i = 0; i < 200; ++i) {
    const std::string found = files_.read("key");
    EXPECT_TRUE(found == first || found == second) << found.size();
  }
  for (std::thread& writer : writers) writer.join();
  const auto begin = std::filesystem::directory_iterator(folder_.path());
  EXPECT_EQ(std::distance(begin, std::filesystem::directory_iterator()), 1);
}

TEST(CacheFiles, WithoutAFolderKeepNothing) {
  const CacheFiles files("", "cubin");
  files.write("key", "code");
  EXPECT_EQ(files.read("key"), "");
}

}  // namespace
}  // namespace tessera::cuda
