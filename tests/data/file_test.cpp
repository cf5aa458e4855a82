#include "tessera/base/file.h"

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "support/expect_error.h"
#include "support/temporary_folder.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;
using testing::TemporaryFolder;

size_t entries_in(const fs::path& folder) {
  return static_cast<size_t>(std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

TEST(File, WhatIsWrittenIsRead) {
  const TemporaryFolder folder;
  for (size_t size : {size_t{0}, size_t{1}, size_t{4096}, size_t{100'000}}) {
    const std::string text(size, 'x');
    write_file(folder / "file", text);
    EXPECT_EQ(read_text_file(folder / "file"), text);
    EXPECT_EQ(read_file(folder / "file").size(), size);
  }
  EXPECT_EQ(entries_in(folder.path()), 1u);
}

TEST(File, ReadingNamesTheFileAndTheFault) {
  const TemporaryFolder folder;
  EXPECT_ERROR(read_file(folder / "absent"), ErrorCode::io, (folder / "absent").string(), "No such file");
  EXPECT_ERROR(read_file(folder.path()), ErrorCode::io, folder.path().string(), "is a directory");
  write_file(folder / "file", "0123456789");
  EXPECT_EQ(read_text_file(folder / "file", 10), "0123456789");
  EXPECT_ERROR(read_text_file(folder / "file", 9), ErrorCode::invalid_file, "file", "9 B");
}

TEST(File, ReadingTakesNoMoreMemoryThanTheFile) {
  const TemporaryFolder folder;
  constexpr size_t kSize = 1 << 20;
  write_file(folder / "file", std::string(kSize, 'x'));
  EXPECT_LE(read_file(folder / "file").capacity(), kSize + 4096);
  EXPECT_LE(read_text_file(folder / "file").capacity(), kSize + 4096);
}

TEST(File, ReadsFilesWhoseSizeIsNotKnownBeforehand) {
  EXPECT_FALSE(read_text_file("/proc/self/status").empty());
}

TEST(MappedFile, SharesTheContents) {
  const TemporaryFolder folder;
  write_file(folder / "file", "0123456789");
  MappedFile file(folder / "file");
  ASSERT_EQ(file.size(), 10u);
  EXPECT_EQ(static_cast<char>(file.bytes()[3]), '3');
  MappedFile moved = std::move(file);
  std::vector<std::byte> target(4);
  moved.copy(5, target);
  EXPECT_EQ(static_cast<char>(target[0]), '5');
  EXPECT_ERROR(moved.copy(7, target), ErrorCode::invalid_argument, "file");
  EXPECT_ERROR(moved.copy(~uint64_t{0}, target), ErrorCode::invalid_argument, "file");
}

TEST(MappedFile, EmptyFileAndWrongKinds) {
  const TemporaryFolder folder;
  write_file(folder / "empty", "");
  EXPECT_EQ(MappedFile(folder / "empty").bytes().size(), 0u);
  EXPECT_ERROR(MappedFile(folder.path()), ErrorCode::io, "is a directory");
  EXPECT_ERROR(MappedFile("/dev/null"), ErrorCode::io, "not a regular file");
}

TEST(MappedFile, TruncationMeanwhileIsAnError) {
  const TemporaryFolder folder;
  write_file(folder / "file", std::string(10'000, 'x'));
  const MappedFile file(folder / "file");
  fs::resize_file(folder / "file", 5000);
  std::vector<std::byte> target(10'000);
  EXPECT_ERROR(file.copy(0, target), ErrorCode::io, "became shorter", "5000");
}

TEST(AtomicFile, WithoutCommitTheOldFileStays) {
  const TemporaryFolder folder;
  write_file(folder / "file", "old");
  {
    AtomicFile file(folder / "file");
    file.write("new");
    EXPECT_EQ(read_text_file(folder / "file"), "old");
  }
  EXPECT_EQ(read_text_file(folder / "file"), "old");
  EXPECT_EQ(entries_in(folder.path()), 1u);
}

TEST(AtomicFile, RefusesFoldersAndMissingParents) {
  const TemporaryFolder folder;
  EXPECT_ERROR(write_file(folder.path(), "x"), ErrorCode::io, folder.path().string(), "is a directory");
  EXPECT_ERROR(write_file(folder / "absent/file", "x"), ErrorCode::io, "absent/file", "No such file");
  EXPECT_EQ(entries_in(folder.path()), 0u);
}

TEST(AtomicFile, UnwritableFolder) {
  const TemporaryFolder folder;
  ::chmod(folder.path().c_str(), 0555);
  const bool is_root = ::geteuid() == 0;  // who may write everywhere
  if (is_root && ::seteuid(65534) != 0) GTEST_SKIP() << "cannot give up root";
  EXPECT_ERROR(write_file(folder / "file", "x"), ErrorCode::io, (folder / "file").string(),
               "Permission denied");
  if (is_root) {
    ASSERT_EQ(::seteuid(0), 0);
  }
  ::chmod(folder.path().c_str(), 0755);
}

// A limit on file sizes stands in for a full disk: write() fails the same way, after part of the bytes.
TEST(AtomicFile, FailureInTheMiddleLeavesTheOldFile) {
  const TemporaryFolder folder;
  write_file(folder / "file", "old");
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{65536, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  EXPECT_ERROR(write_file(folder / "file", std::string(200'000, 'x')), ErrorCode::io,
               (folder / "file").string(), "cannot write", "File too large");
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, old_handler);
  EXPECT_EQ(read_text_file(folder / "file"), "old");
  EXPECT_EQ(entries_in(folder.path()), 1u);
}

TEST(AtomicFile, RemovesWhatAKilledWriterLeftAndNothingElse) {
  const TemporaryFolder folder;
  std::ofstream(folder / "file.partial-123-4") << "leftover";
  std::ofstream(folder / "file.partial-notes") << "a user's";
  std::ofstream(folder / "other.partial-123-4") << "another target's";
  AtomicFile living(folder / "file");
  living.write("first");
  write_file(folder / "file", "second");
  EXPECT_FALSE(fs::exists(folder / "file.partial-123-4"));
  EXPECT_TRUE(fs::exists(folder / "file.partial-notes"));
  EXPECT_TRUE(fs::exists(folder / "other.partial-123-4"));
  EXPECT_EQ(read_text_file(folder / "file"), "second");
  living.commit();
  EXPECT_EQ(read_text_file(folder / "file"), "first");
}

TEST(AtomicFile, ALinkStaysALink) {
  const TemporaryFolder folder;
  write_file(folder / "real", "old");
  fs::create_symlink("real", folder / "link");
  write_file(folder / "link", "new");
  EXPECT_TRUE(fs::is_symlink(folder / "link"));
  EXPECT_EQ(read_text_file(folder / "real"), "new");
}

mode_t mode_of(const fs::path& path) {
  struct stat status {};
  EXPECT_EQ(::stat(path.c_str(), &status), 0);
  return status.st_mode & 07777;
}

TEST(AtomicFile, KeepsTheModeOfTheFileThatItReplaces) {
  const TemporaryFolder folder;
  for (const mode_t mode : {0600, 0644, 0755, 0400}) {
    write_file(folder / "file", "old");
    ASSERT_EQ(::chmod((folder / "file").c_str(), mode), 0);
    write_file(folder / "file", "new");
    EXPECT_EQ(mode_of(folder / "file"), mode);
    EXPECT_EQ(read_text_file(folder / "file"), "new");
    fs::remove(folder / "file");
  }
}

// So many characters of what was written to the other side, which arrive in pieces and a little later.
std::string read_terminal(int master, size_t count) {
  std::string found;
  pollfd arrived = {master, POLLIN, 0};
  while (found.size() < count && ::poll(&arrived, 1, 5000) == 1) {
    std::string piece(count - found.size(), '?');
    const ssize_t size = ::read(master, piece.data(), piece.size());
    if (size <= 0) break;
    found += piece.substr(0, static_cast<size_t>(size));
  }
  return found;
}

// A terminal, /dev/null or a pipe stays what it is, and gets the bytes.
TEST(AtomicFile, WritesThroughDevicesAndPipes) {
  const TemporaryFolder folder;
  const int master = ::posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK);
  ASSERT_GE(master, 0);
  ASSERT_EQ(::grantpt(master) | ::unlockpt(master), 0);
  const std::string terminal = ::ptsname(master);
  fs::create_symlink(terminal, folder / "terminal");
  for (const fs::path& path : {fs::path(terminal), folder / "terminal"}) {
    write_file(path, "text\n");
    EXPECT_TRUE(fs::is_character_file(path));
    EXPECT_EQ(read_terminal(master, 6), "text\r\n");
  }
  ::close(master);

  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  const int pipe = ::open((folder / "pipe").c_str(), O_RDWR | O_NONBLOCK);
  write_file(folder / "pipe", "text");
  std::string received(5, '?');
  EXPECT_EQ(::read(pipe, received.data(), received.size()), 4);
  EXPECT_EQ(received, "text?");
  ::close(pipe);
  EXPECT_TRUE(fs::is_fifo(folder / "pipe"));
  EXPECT_EQ(entries_in(folder.path()), 2u);
}

TEST(AtomicFile, RefusesSockets) {
  const TemporaryFolder folder;
  const int descriptor = ::socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = (folder / "socket").string();
  path.copy(address.sun_path, sizeof(address.sun_path) - 1);
  ASSERT_EQ(::bind(descriptor, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  EXPECT_ERROR(write_file(path, "text"), ErrorCode::io, path, "is a socket");
  EXPECT_TRUE(fs::is_socket(path));
  ::close(descriptor);
}

TEST(AtomicFile, ConcurrentWritersOfOneNameNeverMix) {
  const TemporaryFolder folder;
  std::vector<std::thread> writers;
  for (char letter : {'a', 'b', 'c', 'd'}) {
    writers.emplace_back([&folder, letter] {
      for (int i = 0; i < 20; ++i) write_file(folder / "file", std::string(10'000, letter));
    });
  }
  for (std::thread& writer : writers) writer.join();
  const std::string text = read_text_file(folder / "file");
  EXPECT_EQ(text, std::string(10'000, text[0]));
  EXPECT_EQ(entries_in(folder.path()), 1u);
}

TEST(MakeFolder, ParentsAndRefusals) {
  const TemporaryFolder folder;
  make_folder(folder / "a/b/c");
  make_folder(folder / "a/b/c");
  EXPECT_TRUE(fs::is_directory(folder / "a/b/c"));
  write_file(folder / "file", "x");
  EXPECT_ERROR(make_folder(folder / "file"), ErrorCode::io, (folder / "file").string());
  EXPECT_ERROR(make_folder(folder / "file/below"), ErrorCode::io, "file/below");
}

}  // namespace
}  // namespace tessera
