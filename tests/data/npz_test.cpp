#include "tessera/data/npz.h"

#include <cstring>

#include <gtest/gtest.h>

#include "tessera/base/file.h"
#include "tessera/data/tables.h"
#include "tessera/data/zip.h"

#include "support/expect_error.h"
#include "support/temporary_folder.h"
#include "test_folder.h"

namespace tessera::data {
namespace {

constexpr auto kInvalid = ErrorCode::invalid_file;

std::string golden(const std::string& name) {
  return read_text_file(std::string(TESSERA_TEST_FOLDER "/golden/") + name + ".npz");
}

Feeds parse(const std::string& text) {
  return parse_npz(as_bytes(text), "x.npz");
}

std::string little_endian_text(uint64_t number, size_t bytes) {
  std::string text;
  for (size_t i = 0; i < bytes; ++i) text += static_cast<char>(number >> 8 * i & 0xff);
  return text;
}

struct File {
  std::string name;
  std::string contents;
  bool deflated = false;
};

// What gzip has between its header and the checksum.
std::string deflated(const std::string& text) {
  const std::vector<std::byte> file = gzip(as_bytes(text));
  return std::string(reinterpret_cast<const char*>(file.data()), file.size()).substr(10, file.size() - 18);
}

uint64_t checksum_of(const std::string& text) {
  const std::vector<std::byte> file = gzip(as_bytes(text));
  uint64_t sum = 0;
  for (size_t i = 4; i-- > 0;) sum = sum << 8 | std::to_integer<uint64_t>(file[file.size() - 8 + i]);
  return sum;
}

// As zip programs write it.
std::string archive(const std::vector<File>& files) {
  const auto number = little_endian_text;
  std::string text;
  std::string directory;
  for (const File& file : files) {
    const std::string stored = file.deflated ? deflated(file.contents) : file.contents;
    const std::string common = number(20, 2) + number(0, 2) + number(file.deflated ? 8 : 0, 2) +
                               number(0, 4) + number(checksum_of(file.contents), 4) +
                               number(stored.size(), 4) + number(file.contents.size(), 4) +
                               number(file.name.size(), 2) + number(0, 2);
    directory += "PK\x01\x02" + number(20, 2) + common + number(0, 10) + number(text.size(), 4) + file.name;
    text += "PK\x03\x04" + common + file.name + stored;
  }
  return text + directory + "PK\x05\x06" + number(0, 4) + number(files.size(), 2) + number(files.size(), 2) +
         number(directory.size(), 4) + number(text.size(), 4) + number(0, 2);
}

// Other bytes, counted from the last place of a signature.
std::string altered(std::string text, const std::string& signature, size_t offset, const std::string& bytes) {
  return text.replace(text.rfind(signature) + offset, bytes.size(), bytes);
}

std::vector<ZipMember> members_of(const std::string& text) {
  return parse_zip(as_bytes(text), "x.zip");
}

TEST(Npz, ReadsWhatNumPyWrites) {
  for (const char* name : {"plain", "deflated"}) {
    const Feeds arrays = parse(golden(name));
    ASSERT_EQ(arrays.size(), 5U) << name;
    EXPECT_EQ(arrays.at("rows").shape(), (Shape{2, 3}));
    EXPECT_EQ(arrays.at("rows").data_type(), DataType::int32);
    EXPECT_EQ(arrays.at("rows").to_doubles(), (std::vector<double>{-3, -2, -1, 0, 1, 2}));
    EXPECT_EQ(arrays.at("columns").to_doubles(), (std::vector<double>{0, 0.25, 0.5, 0.75, 1, 1.25}));
    EXPECT_EQ(arrays.at("scalar").shape(), Shape{});
    EXPECT_EQ(arrays.at("scalar").to_doubles(), std::vector<double>{7});
    EXPECT_EQ(arrays.at("nothing").shape(), (Shape{0, 4}));
    EXPECT_EQ(arrays.at("folder/same").to_doubles(), std::vector<double>(5000, 1));
  }
}

TEST(Npz, WhatIsNotWantedIsNotRead) {
  const std::string good = golden("plain");
  std::vector<std::string> asked;
  const Feeds arrays = parse_npz(as_bytes(good), "x.npz", kMaximumFileBytes, [&](const std::string& name) {
    asked.push_back(name);
    return name == "rows";
  });
  EXPECT_EQ(asked.size(), 5U);
  ASSERT_EQ(arrays.size(), 1U);
  EXPECT_TRUE(arrays.contains("rows"));
  // Too long together, but not what is wanted of it.
  EXPECT_NO_THROW(
      parse_npz(as_bytes(good), "x.npz", 1000, [](const std::string& name) { return name == "rows"; }));
}

TEST(Npz, RefusesWhatIsNoArrayOrTooMuch) {
  const std::string plain = golden("plain");
  EXPECT_ERROR(parse_npz(as_bytes(plain), "x.npz", 5000), kInvalid, "x.npz: holds more than 5000 bytes");
  EXPECT_ERROR(parse(archive({{"a.txt", "text"}})), kInvalid, "holds 'a.txt', which is no .npy file");
  EXPECT_ERROR(parse(archive({{"a.npy", "text", true}})), kInvalid, "x.npz: a.npy: no .npy file");
  EXPECT_TRUE(parse(archive({})).empty());
  for (size_t size = 0; size < plain.size(); size += size < 100 ? 1 : 97)
    EXPECT_ERROR(parse(plain.substr(0, size)), kInvalid, "x.npz");
}

TEST(Zip, HoldsWhatWasWritten) {
  const std::string text =
      archive({{"a/b", "abc"}, {"folder/", ""}, {"c", std::string(9000, 'x'), true}, {"d", "", true}});
  for (const std::string& whole : {text, altered(text, "PK\x05\x06", 20, little_endian_text(3, 2)) + "end"}) {
    const std::vector<ZipMember> members = members_of(whole);
    ASSERT_EQ(members.size(), 3U);
    EXPECT_EQ(members[0].name, "a/b");
    EXPECT_LT(members[1].stored_bytes, 100U);
    const std::vector<std::byte> contents = unzip(as_bytes(whole), members[1], "x.zip");
    EXPECT_EQ(contents, std::vector<std::byte>(9000, std::byte{'x'}));
    EXPECT_TRUE(unzip(as_bytes(whole), members[2], "x.zip").empty());
  }
}

// Numbers that stand in the Zip64 parts, as archives of more than 4 GiB have them.
TEST(Zip, KnowsLongForms) {
  const auto number = little_endian_text;
  const std::string small = archive({{"a", "abc"}});
  const size_t place = small.find("PK\x01\x02");
  const std::string local = small.substr(0, place);
  std::string entry =
      altered(small.substr(place, 47), "PK\x01\x02", 20, number(0xffffffff, 4) + number(0xffffffff, 4));
  entry = altered(entry, "PK\x01\x02", 30, number(20, 2));
  entry += number(1, 2) + number(16, 2) + number(3, 8) + number(3, 8);
  const std::string end = "PK\x06\x06" + number(44, 8) + number(45, 2) + number(45, 2) + number(0, 8) +
                          number(1, 8) + number(1, 8) + number(entry.size(), 8) + number(place, 8);
  const std::string end_place = "PK\x06\x07" + number(0, 4) + number(place + entry.size(), 8) + number(1, 4);
  const std::string last = "PK\x05\x06" + number(0, 4) + number(0xffff, 2) + number(0xffff, 2) +
                           number(0xffffffff, 4) + number(0xffffffff, 4) + number(0, 2);
  const std::string text = local + entry + end + end_place + last;
  ASSERT_EQ(members_of(text).size(), 1U);
  EXPECT_EQ(members_of(text)[0].bytes, 3U);
  EXPECT_ERROR(members_of(altered(text, "PK\x06\x06", 32, number(uint64_t{1} << 60, 8))), kInvalid,
               "too short");
  EXPECT_ERROR(members_of(altered(text, "PK\x06\x06", 48, number(~uint64_t{0}, 8))), kInvalid, "outside");
  EXPECT_ERROR(members_of(altered(text, "PK\x06\x07", 8, number(~uint64_t{0}, 8))), kInvalid, "missing");
}

TEST(Zip, RefusesWhatIsBrokenAndWhatLeadsOut) {
  const auto number = little_endian_text;
  const std::string text = archive({{"a", "abc"}, {"b", std::string(9000, 'x'), true}});
  const std::string entry = "PK\x01\x02";
  EXPECT_ERROR(members_of(""), kInvalid, "x.zip", "truncated");
  EXPECT_ERROR(members_of(text.substr(0, text.size() - 1)), kInvalid, "no directory at its end");
  for (const char* name : {"../a", "/a", "b/../../c"})
    EXPECT_ERROR(members_of(archive({{name, "abc"}})), kInvalid, "leads out of it");
  EXPECT_ERROR(members_of(archive({{"a", "abc"}, {"a", "abc"}})), kInvalid, "'a' is in it twice");
  EXPECT_ERROR(members_of(altered(text, entry, 8, number(1, 2))), kInvalid, "'b' is encrypted");
  EXPECT_ERROR(members_of(altered(text, entry, 10, number(12, 2))), kInvalid, "compressed otherwise");
  EXPECT_ERROR(members_of(altered(text, entry, 24, number(1 << 30, 4))), kInvalid, "tells of more");
  EXPECT_ERROR(members_of(altered(text, entry, 20, number(1 << 30, 4))), kInvalid, "reaches beyond the end");
  EXPECT_ERROR(members_of(altered(text, entry, 42, number(5, 4))), kInvalid, "not where the directory says");
  EXPECT_ERROR(members_of(altered(text, entry, 42, number(0, 4))), kInvalid, "'b' has another name");
  EXPECT_ERROR(members_of(altered(text, "PK\x05\x06", 10, number(1, 2))), kInvalid, "not as long as it says");
  EXPECT_ERROR(members_of(altered(text, "PK\x05\x06", 4, number(1, 2))), kInvalid, "several parts");
  const auto contents = [](const std::string& archive_text) {
    return unzip(as_bytes(archive_text), members_of(archive_text).back(), "x.zip");
  };
  EXPECT_ERROR(contents(altered(text, entry, 16, number(7, 4))), kInvalid, "x.zip: b: its checksum");
  EXPECT_ERROR(contents(altered(text, entry, 24, number(8999, 4))), kInvalid,
               "decompresses to more than 8999 bytes");
  EXPECT_ERROR(contents(altered(text, entry, 24, number(9001, 4))), kInvalid,
               "decompresses to 9000 bytes, 9001");
  EXPECT_ERROR(contents(altered(text, entry, 20, number(10, 4))), kInvalid, "truncated deflated data");
}

// A local header inside of another member's contents: the same bytes would be told of twice.
TEST(Zip, RefusesMembersThatLieOnEachOther) {
  const std::string inner = archive({{"b", "inner"}});
  const size_t header = inner.find("PK\x01\x02");
  std::string text = archive({{"a", inner.substr(0, header)}, {"b", "inner"}});
  text = altered(text, "PK\x01\x02", 42, little_endian_text(31, 4));
  EXPECT_ERROR(members_of(text), kInvalid, "'b' lies on 'a'");
}

TEST(NpzTable, GivesColumnsAsOtherTablesDo) {
  const testing::TemporaryFolder folder;
  const auto array = [](const std::string& type, size_t count, const std::string& data) {
    std::string header =
        fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({},), }}", type, count);
    header.append(117 - header.size(), ' ');
    std::string file("\x93NUMPY\x01\x00\x76\x00", 10);
    file += header;
    file += '\n';
    return file.append(data);
  };
  const std::vector<float> prices{0.1F, 2, 0.1F};
  std::string price_bytes(12, '\0');
  std::memcpy(price_bytes.data(), prices.data(), 12);
  write_file(folder / "x.npz",
             archive({{"day.npy", array("<i2", 3, std::string("\x05\x00\xff\xff\x05\x00", 6))},
                      {"price.npy", array("<f4", 3, price_bytes), true},
                      {"short.npy", array("|u1", 2, "ab")}}));
  const TableDescription& kind = tables().get("npz");
  Options options;
  options.set("path", (folder / "x.npz").string());
  const std::vector<TextColumn> columns = kind.open(options, {"price", "day"});
  ASSERT_EQ(columns.size(), 2U);
  EXPECT_EQ(columns[0].values, (std::vector<std::string>{"0.1", "2"}));
  EXPECT_EQ(columns[0].codes, (std::vector<int32_t>{0, 1, 0}));
  EXPECT_EQ(columns[1].values, (std::vector<std::string>{"5", "-1"}));
  EXPECT_ERROR(kind.open(options, {"days"}), ErrorCode::invalid_argument, "no array 'days'",
               "did you mean 'day'");
  EXPECT_ERROR(kind.open(options, {"day", "short"}), kInvalid, "'day' has 3 rows, 'short' has 2");
}

}  // namespace
}  // namespace tessera::data
