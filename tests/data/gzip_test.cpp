#include "tessera/data/gzip.h"

#include <string>

#include <gtest/gtest.h>

#include "tessera/base/file.h"
#include "tessera/base/random.h"

#include "support/expect_error.h"
#include "support/temporary_folder.h"

namespace tessera::data {
namespace {

using Bytes = std::vector<std::byte>;

Bytes random_bytes(size_t size, uint64_t distinct = 256) {
  const Random random(7);
  Bytes bytes;
  for (size_t i = 0; i < size; ++i) bytes.push_back(static_cast<std::byte>(random.word(i) % distinct));
  return bytes;
}

TEST(Gzip, RoundTripOfManySizes) {
  for (size_t size : {0, 1, 100, 65535, 65536, 65537, 1'000'000}) {
    const Bytes bytes = random_bytes(size, 4);
    const Bytes packed = gzip(bytes);
    EXPECT_TRUE(is_gzip(packed));
    EXPECT_EQ(gunzip(packed, "file", size), bytes);
  }
}

TEST(Gzip, EveryTruncationIsAnError) {
  const Bytes packed = gzip(random_bytes(300));
  for (size_t size = 2; size < packed.size(); ++size) {
    EXPECT_ERROR(gunzip(std::span(packed).first(size), "short.gz", 1000), ErrorCode::invalid_file, "short.gz",
                 "truncated");
  }
}

TEST(Gzip, EveryChangedByteOfTheDataIsAnError) {
  const Bytes packed = gzip(random_bytes(300, 4));
  for (size_t i = 10; i < packed.size(); ++i) {  // the first ten hold flags, time and system
    Bytes corrupt = packed;
    corrupt[i] ^= std::byte{0x10};
    EXPECT_ERROR(gunzip(corrupt, "bad.gz", 1000), ErrorCode::invalid_file, "bad.gz") << "byte " << i;
  }
}

TEST(Gzip, ABombStopsAtTheExpectedMaximum) {
  const Bytes packed = gzip(Bytes(10'000'000));
  EXPECT_LT(packed.size(), 20'000u);
  EXPECT_ERROR(gunzip(packed, "bomb.gz", 9'999'999), ErrorCode::invalid_file, "bomb.gz", "9999999");
  EXPECT_EQ(gunzip(packed, "bomb.gz", 10'000'000).size(), 10'000'000u);
}

TEST(Gzip, MembersFollowOneAnotherAndZerosPad) {
  const Bytes first = random_bytes(100);
  Bytes packed = gzip(first);
  const Bytes second = gzip(random_bytes(100));
  packed.insert(packed.end(), second.begin(), second.end());
  EXPECT_EQ(gunzip(packed, "two", 1000).size(), 200u);
  packed.resize(packed.size() + 512);
  EXPECT_EQ(gunzip(packed, "padded", 1000).size(), 200u);
  packed.push_back(std::byte{1});
  EXPECT_ERROR(gunzip(packed, "tail", 1000), ErrorCode::invalid_file, "tail", "513 bytes of something else");
}

TEST(Gzip, PrefixStopsEarly) {
  const Bytes bytes = random_bytes(1000);
  EXPECT_EQ(gunzip_prefix(gzip(bytes), "file", 10), Bytes(bytes.begin(), bytes.begin() + 10));
  EXPECT_EQ(gunzip_prefix(gzip(bytes), "file", 5000), bytes);
}

TEST(Gzip, PlainOrGzipIsToldByTheContents) {
  const testing::TemporaryFolder folder;
  const Bytes bytes = random_bytes(1000);
  write_file(folder / "plain.gz", bytes);
  write_file(folder / "packed", gzip(bytes));
  EXPECT_EQ(read_plain_or_gzip(folder / "plain.gz"), bytes);
  EXPECT_EQ(read_plain_or_gzip(folder / "packed"), bytes);
  EXPECT_ERROR(read_plain_or_gzip(folder / "packed", 999), ErrorCode::invalid_file, "packed");
}

}  // namespace
}  // namespace tessera::data
