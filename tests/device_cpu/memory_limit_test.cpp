#include "device/cpu/runtime/memory_limit.h"

#include <filesystem>
#include <fstream>
#include <limits>

#include <gtest/gtest.h>

#include "support/temporary_folder.h"

namespace tessera::cpu {
namespace {

// A file system of nothing but the files of control groups.
class ControlGroups : public ::testing::Test {
 protected:
  void write(const std::string& file, const std::string& text) {
    const std::filesystem::path path = folder_ / file;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text << "\n";
  }
  int64_t limit() const { return control_group_limit(folder_.path()); }

  static constexpr int64_t kNone = std::numeric_limits<int64_t>::max();
  testing::TemporaryFolder folder_;
};

TEST_F(ControlGroups, NoneIsNoLimit) {
  EXPECT_EQ(limit(), kNone);
  write("proc/self/cgroup", "0::/");
  EXPECT_EQ(limit(), kNone);
  write("sys/fs/cgroup/memory.max", "max");
  EXPECT_EQ(limit(), kNone);
}

TEST_F(ControlGroups, TheLeastOfTheGroupsAboveHolds) {
  write("proc/self/cgroup", "0::/user.slice/job.scope");
  write("sys/fs/cgroup/user.slice/memory.max", "3000000");
  write("sys/fs/cgroup/user.slice/job.scope/memory.max", "max");
  EXPECT_EQ(limit(), 3000000);
  write("sys/fs/cgroup/user.slice/job.scope/memory.max", "2000000");
  EXPECT_EQ(limit(), 2000000);
}

TEST_F(ControlGroups, AContainerFindsItsOwnAtTheTop) {
  write("proc/self/cgroup", "4:memory:/docker/123\n3:cpu,cpuacct:/docker/123\n0::/");
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "1073741824");
  EXPECT_EQ(limit(), 1073741824);
}

TEST_F(ControlGroups, TheVersionBeforeLimitsMemoryInAFolderOfItsOwn) {
  write("proc/self/cgroup", "9:hugetlb,memory:/job");
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712");
  write("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "500");
  EXPECT_EQ(limit(), 500);
}

TEST(AvailableMemory, IsSome) {
  EXPECT_GT(available_memory(), 0);
  EXPECT_LE(available_memory(), control_group_limit());
}

}  // namespace
}  // namespace tessera::cpu
