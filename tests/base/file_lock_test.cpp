// Locks between processes.
#include "tessera/base/file_lock.h"

#include <csignal>
#include <fstream>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/expect_error.h"
#include "support/temporary_folder.h"

namespace tessera::testing {
namespace {

TEST(FileLock, IsHeldByOneAndGoesWithIt) {
  const TemporaryFolder folder;
  const auto path = folder / "lock";
  {
    std::optional<FileLock> lock = FileLock::try_lock(path);
    ASSERT_TRUE(lock.has_value());
    EXPECT_EQ(FileLock::holder(path), std::to_string(::getpid()));
    EXPECT_FALSE(FileLock::try_lock(path).has_value());
    const FileLock moved = std::move(*lock);
    lock.reset();
    EXPECT_FALSE(FileLock::try_lock(path).has_value());
  }
  EXPECT_FALSE(std::filesystem::exists(path));
  EXPECT_TRUE(FileLock::try_lock(path).has_value());
}

TEST(FileLock, EndsWithItsProcessHoweverThatEnds) {
  const TemporaryFolder folder;
  const auto path = folder / "lock";
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const std::optional<FileLock> lock = FileLock::try_lock(path);
    while (true) ::pause();
  }
  while (FileLock::holder(path) != std::to_string(child)) ::usleep(1000);
  EXPECT_FALSE(FileLock::try_lock(path).has_value());
  ASSERT_EQ(::kill(child, SIGKILL), 0);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  EXPECT_TRUE(std::filesystem::exists(path));
  EXPECT_TRUE(FileLock::try_lock(path).has_value());
}

TEST(FileLock, SaysWhyThereCanBeNone) {
  const TemporaryFolder folder;
  EXPECT_ERROR(FileLock::try_lock(folder / "missing" / "lock"), ErrorCode::io, "missing/lock",
               "cannot create");
  EXPECT_EQ(FileLock::holder(folder / "none"), "");
  std::ofstream(folder / "other") << "not a number";
  EXPECT_EQ(FileLock::holder(folder / "other"), "");
}

}  // namespace
}  // namespace tessera::testing
