#include "tessera/data/shards.h"

#include <algorithm>
#include <cstring>
#include <tuple>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tessera/base/file.h"
#include "tessera/data/tar.h"

#include "support/expect_error.h"
#include "support/temporary_folder.h"

namespace tessera::data {
namespace {

namespace fs = std::filesystem;
using testing::TemporaryFolder;

struct File {
  std::string name;
  std::string contents;
};

std::string text_of(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string archive(const std::vector<File>& files) {
  std::string text;
  for (const File& file : files) {
    text += text_of(tar_header(file.name, file.contents.size())) + file.contents;
    text.append(tar_padding(file.contents.size()), '\0');
  }
  return text + std::string(kTarEnd, '\0');
}

// Another type, name or number in a header, with its checksum.
std::string altered(std::string text, size_t offset, const std::string& field) {
  text.replace(offset, field.size(), field);
  text.replace(148, 8, "        ");
  uint64_t sum = 0;
  for (size_t i = 0; i < 512; ++i) sum += static_cast<uint8_t>(text[i]);
  text.replace(148, 8, fmt::format("{:06o}", sum) + std::string("\0 ", 2));
  return text;
}

std::vector<TarMember> parse(const std::string& text) {
  return parse_tar(as_bytes(text), "x.tar");
}

TEST(Tar, HoldsWhatWasWritten) {
  const std::string text = archive({{"a/1.jpg", "abc"}, {"a/1.cls", ""}, {"b", std::string(1024, 'x')}});
  const std::vector<TarMember> members = parse(text);
  ASSERT_EQ(members.size(), 3U);
  EXPECT_EQ(members[0].name, "a/1.jpg");
  EXPECT_EQ(text.substr(members[0].offset, members[0].bytes), "abc");
  EXPECT_EQ(members[1].bytes, 0U);
  EXPECT_EQ(text.substr(members[2].offset, members[2].bytes), std::string(1024, 'x'));
  EXPECT_TRUE(parse("").empty());
  EXPECT_ERROR(tar_header(std::string(101, 'a'), 1), ErrorCode::invalid_argument, "1 to 100 bytes");
}

TEST(Tar, KnowsLongNames) {
  const std::string name = fmt::format("{:d>150}/1.jpg", "");
  const std::string terminated(name.c_str(), name.size() + 1);
  const std::string gnu = altered(archive({{"long", terminated}, {"short", "abc"}}), 156, "L");
  ASSERT_EQ(parse(gnu).size(), 1U);
  EXPECT_EQ(parse(gnu)[0].name, name);
  const std::string record = fmt::format("{} path={}\n", name.size() + 10, name);
  const std::string pax = altered(archive({{"long", record}, {"short", "abc"}, {"after", ""}}), 156, "x");
  ASSERT_EQ(parse(pax).size(), 2U);
  EXPECT_EQ(parse(pax)[0].name, name);
  EXPECT_EQ(parse(pax)[1].name, "after");
  EXPECT_EQ(parse(altered(archive({{"1.jpg", "abc"}}), 345, "folder"))[0].name, "folder/1.jpg");
}

TEST(Tar, RefusesWhatIsBrokenAndWhatLeadsOut) {
  const std::string text = archive({{"a", "abc"}, {"b", "def"}});
  const auto code = ErrorCode::invalid_file;
  EXPECT_ERROR(parse(text.substr(0, 100)), code, "x.tar", "byte 0", "truncated");
  EXPECT_ERROR(parse(text.substr(0, 514)), code, "beyond the end");
  std::string flipped = text;
  flipped[1024] ^= 1;
  EXPECT_ERROR(parse(flipped), code, "byte 1024", "checksum");
  EXPECT_ERROR(parse(altered(text, 0, "../b")), code, "leads out");
  EXPECT_ERROR(parse(altered(text, 0, "b/../../c")), code, "leads out");
  EXPECT_ERROR(parse(altered(text, 0, "/etc/b")), code, "leads out");
  EXPECT_ERROR(parse(altered(text, 156, "2")), code, "a link");
  EXPECT_ERROR(parse(altered(text, 124, "77777777777")), code, "beyond the end");
  EXPECT_ERROR(parse(altered(text, 124, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff")), code,
               "beyond the end");
  EXPECT_ERROR(parse(altered(archive({{"a", "9 size=x\n"}, {"b", ""}}), 156, "x")), code, "broken");
  EXPECT_ERROR(parse(altered(archive({{"a", "99 path=b\n"}, {"b", ""}}), 156, "x")), code, "broken");
  EXPECT_EQ(parse(altered(text, 156, "5")).size(), 1U);  // a folder
}

std::string image() {
  return text_of(encode_png(std::vector<uint8_t>(12, 9), {2, 2, 3}));
}

TEST(TarShards, AreReadAsWebDatasetNamesThem) {
  const TemporaryFolder folder;
  write_file(folder / "b.tar", archive({{"x/3.cls", "4\n"}, {"x/3.seg.png", "?"}, {"x/3.png", image()}}));
  write_file(folder / "a.tar", archive({{"1.png", image()}, {"1.cls", "0"}, {"2.txt", "?"}}));
  for (int pass = 0; pass < 2; ++pass) {  // the second time by the index
    const auto samples = open_tar_shards(folder.path(), {.test_share = 0});
    ASSERT_EQ(samples->size(), 2);
    EXPECT_EQ(samples->label(0), 0);
    EXPECT_EQ(samples->label(1), 4);
    EXPECT_EQ(samples->class_names().size(), 5U);
    EXPECT_NE(samples->name(1).find("b.tar"), std::string::npos);
    EXPECT_EQ(text_of(samples->bytes(1)), image());
    EXPECT_TRUE(fs::exists(folder / "index.safetensors"));
  }
  // An index of other shards, or a broken one, is made anew.
  write_file(folder / "c.tar", archive({{"5.png", image()}, {"5.cls", "1"}}));
  EXPECT_EQ(open_tar_shards(folder.path(), {.test_share = 0})->size(), 3);
  write_file(folder / "index.safetensors", "nonsense");
  EXPECT_EQ(open_tar_shards(folder.path(), {.test_share = 0})->size(), 3);
  write_file(folder / "classes.txt", "one\ntwo\n");
  EXPECT_ERROR(open_tar_shards(folder.path()), ErrorCode::invalid_file, "names 2 classes", "have 5");
}

TEST(TarShards, RefuseWhatIsIncomplete) {
  const TemporaryFolder folder;
  const auto open = [&](const std::string& text) {
    write_file(folder / "a.tar", text);
    open_tar_shards(folder.path(), {.test_share = 0});
  };
  const auto code = ErrorCode::invalid_file;
  EXPECT_ERROR(open_tar_shards(folder.path()), code, "no tar shards");
  EXPECT_ERROR(open(archive({})), code, "hold no images");
  EXPECT_ERROR(open(archive({{"1.png", image()}, {"2.cls", "1"}})), code, "a.tar", "1.cls is missing");
  EXPECT_ERROR(open(archive({{"1.png", image()}, {"1.cls", "cat"}})), code, "1.cls", "'cat'");
  EXPECT_ERROR(open(archive({{"1.png", image()}, {"1.cls", "-1"}})), code, "'-1'");
  EXPECT_ERROR(open(archive({{"1.png", image()}, {"1.jpg", image()}, {"1.cls", "1"}})), code,
               "the second of its key");
}

// Ten samples of numbered contents, named as if they were files.
class Numbered : public EncodedSamples {
 public:
  int64_t size() const override { return 10; }
  int32_t label(int64_t index) const override { return static_cast<int32_t>(index % 3); }
  std::string name(int64_t index) const override { return std::to_string(index); }
  const std::vector<std::string>& class_names() const override { return classes_; }
  std::vector<std::byte> bytes(int64_t index) const override {
    ++reads;
    return std::vector<std::byte>(100, static_cast<std::byte>(index));
  }
  mutable int64_t reads = 0;

 private:
  std::vector<std::string> classes_{"a", "b", "c"};
};

TEST(PackShards, GoesOnWhereItStopped) {
  const TemporaryFolder folder;
  const Numbered samples;
  std::atomic<bool> stop{false};
  PackOptions options{.shard_bytes = 5000, .stop = &stop};
  options.on_shard = [&](const PackedShard&) { stop = true; };
  const PackResult begun = pack_shards(samples, folder / "out", options);
  EXPECT_FALSE(begun.completed);
  ASSERT_EQ(begun.shards.size(), 1U);
  const int64_t before = samples.reads;
  options.stop = nullptr;
  const PackResult result = pack_shards(samples, folder / "out", options);
  EXPECT_TRUE(result.completed);
  EXPECT_EQ(result.kept, 1);
  EXPECT_EQ(samples.reads, 10);
  EXPECT_LT(before, 10);
  const PackResult whole = pack_shards(samples, folder / "whole", options);
  for (size_t i = 0; i < whole.shards.size(); ++i)
    EXPECT_EQ(read_file(folder / "whole" / whole.shards[i].name),
              read_file(folder / "out" / result.shards[i].name));
  const auto read = open_tar_shards(folder / "out", {.test_share = 0});
  ASSERT_EQ(read->size(), 10);
  EXPECT_EQ(read->class_names()[2], "c");
  for (int64_t i = 0; i < 10; ++i) {
    EXPECT_EQ(read->label(i), samples.label(i));
    EXPECT_EQ(read->bytes(i), samples.bytes(i));
  }
  EXPECT_ERROR(pack_shards(samples, folder / "out", {.shard_bytes = 6000}), ErrorCode::invalid_file,
               "another size of shards");
}

// A list that counts what it does not hold, or names a shard in the place of another, keeps nothing from
// there on.
TEST(PackShards, KeepWhatTheListNamesInOrder) {
  const TemporaryFolder folder;
  const PackOptions options{.shard_bytes = 4000};
  const PackResult whole = pack_shards(Numbered(), folder.path(), options);
  ASSERT_EQ(whole.shards.size(), 5U);
  const std::string list = text_of(read_file(folder / "manifest.json"));
  for (const auto& [before, after, kept] :
       {std::tuple{R"("samples": 2)", R"("samples": 9223372036854775807)", 0},
        {"shard-000002", "shard-000001", 2},
        {"shard-000000", "shard-000001", 0}}) {
    std::string wrong = list;
    ASSERT_NE(wrong.find(before), std::string::npos) << list;
    write_file(folder / "manifest.json", wrong.replace(wrong.find(before), std::strlen(before), after));
    const PackResult again = pack_shards(Numbered(), folder.path(), options);
    EXPECT_EQ(again.kept, kept) << after;
    EXPECT_TRUE(again.completed);
    EXPECT_EQ(text_of(read_file(folder / "manifest.json")), list);
    EXPECT_TRUE(check_shards(folder.path()).empty());
  }
}

TEST(PackShards, AreCheckedByTheirSums) {
  const TemporaryFolder folder;
  const PackResult result = pack_shards(Numbered(), folder.path(), {.shard_bytes = 4000});
  EXPECT_GT(result.shards.size(), 2U);
  EXPECT_TRUE(check_shards(folder.path()).empty());
  std::vector<std::byte> bytes = read_file(folder / result.shards[0].name);
  bytes[700] ^= std::byte{1};
  write_file(folder / result.shards[0].name, bytes);
  bytes.pop_back();
  write_file(folder / result.shards[1].name, bytes);
  fs::remove(folder / result.shards[2].name);
  const std::vector<std::string> faults = check_shards(folder.path());
  ASSERT_EQ(faults.size(), 3U);
  EXPECT_NE(faults[0].find("checksum"), std::string::npos);
  EXPECT_NE(faults[1].find("bytes"), std::string::npos);
  EXPECT_NE(faults[2].find("missing"), std::string::npos);
  for (const char* name : {"../x.tar", "..", ".", ""}) {
    write_file(
        folder / "manifest.json",
        fmt::format(R"({{"shards": [{{"name": "{}", "samples": 1, "bytes": 1, "crc32": 1}}]}})", name));
    EXPECT_ERROR(check_shards(folder.path()), ErrorCode::invalid_file, "no file of this folder");
  }
  for (const char* samples : {"-1", "1e300", "18446744073709551615", "\"1\""}) {
    write_file(folder / "manifest.json",
               fmt::format(R"({{"shards": [{{"name": "x.tar", "samples": {}, "bytes": 1, "crc32": 1}}]}})",
                           samples));
    EXPECT_ERROR(check_shards(folder.path()), ErrorCode::invalid_file, "'samples'", "no whole number");
  }
  write_file(folder / "manifest.json", "{");
  EXPECT_ERROR(check_shards(folder.path()), ErrorCode::invalid_file, "no list of shards");
}

TEST(ExportImageFolder, IsReadBack) {
  const TemporaryFolder folder;
  const SyntheticDataset dataset({.size = 12, .image_shape = {9, 7, 3}, .classes = 11, .seed = 2});
  EXPECT_EQ(export_image_folder(dataset, folder.path(), {.format = ImageFormat::png, .examples = 10}), 10);
  const auto samples = open_image_folder(folder.path(), {.test_share = 0});
  EXPECT_EQ(samples->size(), 10);
  EXPECT_EQ(samples->class_names().size(), 11U);  // those without an image too
  EXPECT_EQ(samples->class_names()[3], "03_3");
  std::vector<uint8_t> pixels(9 * 7 * 3);
  std::vector<uint8_t> expected(pixels.size());
  for (int64_t i = 0; i < 10; ++i) {
    const std::string name = fs::path(samples->name(i)).stem();
    int32_t label = -1;
    dataset.read(std::stoll(name), expected, label);
    EXPECT_EQ(samples->label(i), label);
    const std::vector<std::byte> bytes = samples->bytes(i);
    EncodedImage(bytes, name).decode({.height = 9, .width = 7}, pixels);
    EXPECT_EQ(pixels, expected);
  }
  EXPECT_ERROR(export_image_folder(dataset, folder.path(), {.format = ImageFormat::webp}),
               ErrorCode::invalid_argument, "webp");
}

}  // namespace
}  // namespace tessera::data
