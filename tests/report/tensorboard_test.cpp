#include "tessera/report/tensorboard.h"

#include <bit>
#include <cstring>

#include <gtest/gtest.h>

#include "tessera/base/file.h"

#include "support/expect_error.h"
#include "support/temporary_folder.h"
#include "test_folder.h"

namespace tessera::report {
namespace {

EventWriterOptions fixed_time(int64_t first_step = 0) {
  return {.first_step = first_step, .clock = [] { return 1700000001.5; }, .suffix = "test"};
}

TEST(Tensorboard, ChecksumIsCastagnolis) {
  EXPECT_EQ(crc32c("123456789"), 0xe3069283u);  // the check value of RFC 3720's polynomial
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(crc32c(""), 0u);
}

// golden/check_events.py reads the golden file with TensorBoard.
TEST(Tensorboard, WritesTheGoldenBytes) {
  const testing::TemporaryFolder folder;
  EventWriter writer(folder / "new" / "events", fixed_time(5));
  writer.add_scalar("train/loss", 0.5, 7);
  writer.add_scalar("train/loss", -1.25, 300);
  writer.add_text("recipe", "# Recipe\n\u00e9", 7);
  writer.flush();
  EXPECT_EQ(writer.path(), folder / "new" / "events" / "events.out.tfevents.1700000001.test");
  EXPECT_EQ(read_text_file(writer.path()),
            read_text_file(std::filesystem::path(TESSERA_TEST_FOLDER) / "golden" / "events.golden"));
}

TEST(Tensorboard, FramesEveryRecord) {
  const testing::TemporaryFolder folder;
  EventWriter writer(folder.path(), fixed_time());
  for (int step = 0; step < 10; ++step) writer.add_text("long", std::string(1000, 'x'), step);
  writer.flush();
  const std::string file = read_text_file(writer.path());
  const auto unmask = [](uint32_t masked) { return std::rotl(masked - 0xa282ead8u, 15); };
  const auto word = [&](size_t offset) {
    uint32_t value = 0;
    std::memcpy(&value, file.data() + offset, sizeof(value));
    return value;
  };
  int records = 0;
  for (size_t offset = 0; offset < file.size(); ++records) {
    ASSERT_LE(offset + 16, file.size());
    const size_t length = word(offset);
    ASSERT_EQ(unmask(word(offset + 8)), crc32c(std::string_view(file).substr(offset, 8)));
    ASSERT_LE(offset + 16 + length, file.size());
    ASSERT_EQ(unmask(word(offset + 12 + length)), crc32c(std::string_view(file).substr(offset + 12, length)));
    offset += 16 + length;
  }
  EXPECT_EQ(records, 11);  // the file version comes first
}

TEST(Tensorboard, FlushShowsEverythingWritten) {
  const testing::TemporaryFolder folder;
  EventWriter writer(folder.path(), fixed_time());
  const auto before = std::filesystem::file_size(writer.path());
  writer.add_scalar("x", 1, 1);
  writer.flush();
  EXPECT_GT(std::filesystem::file_size(writer.path()), before);
}

TEST(Tensorboard, NamesTheFileThatCannotBeWritten) {
  const testing::TemporaryFolder folder;
  write_file(folder / "taken", "not a folder");
  EXPECT_ERROR(EventWriter(folder / "taken"), ErrorCode::io, "taken");
}

}  // namespace
}  // namespace tessera::report
