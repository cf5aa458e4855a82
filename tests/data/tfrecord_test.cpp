#include "tessera/data/tfrecord.h"

#include <filesystem>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tessera/base/file.h"
#include "tessera/data/encoded.h"

#include "support/expect_error.h"
#include "support/temporary_folder.h"

namespace tessera::data {
namespace {

using testing::TemporaryFolder;

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::vector<RecordPlace> parse(const std::string& text) {
  return parse_tfrecord(as_bytes(text), "x.tfrecord");
}

// The lowest byte first.
template <typename Number>
std::string number(Number value) {
  std::string bytes;
  for (size_t i = 0; i < sizeof(Number); ++i) bytes += static_cast<char>(value >> 8U * i & 0xffU);
  return bytes;
}

std::string with_checksum(const std::string& bytes) {
  return bytes + number(masked_checksum(crc32c(as_bytes(bytes))));
}

std::string record(const std::string& contents) {
  return with_checksum(number<uint64_t>(contents.size())) + with_checksum(contents);
}

// A field that holds text: number and type, length, contents.
std::string field(char key, const std::string& contents) {
  std::string length;
  size_t left = contents.size();
  for (; left > 0x7f; left >>= 7U) length += static_cast<char>(left | 0x80U);
  return key + (length + static_cast<char>(left)) + contents;
}

std::string feature(const std::string& name, char kind, const std::string& list) {
  return field('\x0a', field('\x0a', name) + field('\x12', field(kind, list)));
}
std::string bytes_feature(const std::string& name, const std::string& value) {
  return feature(name, '\x0a', field('\x0a', value));
}
std::string label_feature(const std::string& name, char label) {
  return feature(name, '\x1a', field('\x0a', std::string(1, label)));
}
std::string example(const std::string& features) {
  return field('\x0a', features);
}
std::string image_example(const std::string& image, char label) {
  return example(label_feature("image/class/label", label) + bytes_feature("image/encoded", image));
}

// The vectors of RFC 3720, B.4, and the customary one.
TEST(Crc32c, IsCastagnolis) {
  EXPECT_EQ(crc32c(as_bytes("123456789")), 0xe3069283U);
  EXPECT_EQ(crc32c(as_bytes(std::string(32, '\0'))), 0x8a9136aaU);
  EXPECT_EQ(crc32c(as_bytes(std::string(32, '\xff'))), 0x62a8ab43U);
  std::string rising;
  for (char c = 0; c < 32; ++c) rising += c;
  EXPECT_EQ(crc32c(as_bytes(rising)), 0x46dd794eU);
  EXPECT_EQ(crc32c({}), 0U);
}

TEST(TfRecord, PlacesAreThoseOfTheContents) {
  const std::string text = record("abc") + record("") + record(std::string(1000, 'x'));
  const std::vector<RecordPlace> places = parse(text);
  ASSERT_EQ(places.size(), 3U);
  EXPECT_EQ(text.substr(places[0].offset, places[0].bytes), "abc");
  EXPECT_EQ(places[1].bytes, 0U);
  EXPECT_EQ(text.substr(places[2].offset, places[2].bytes), std::string(1000, 'x'));
  EXPECT_TRUE(parse("").empty());
}

TEST(TfRecord, RefusesWhatIsDamaged) {
  const auto code = ErrorCode::invalid_file;
  const std::string text = record("abc") + record("defgh");
  const size_t second = record("abc").size();
  EXPECT_ERROR(parse(text.substr(0, second + 5)), code, "x.tfrecord", fmt::format("byte {}", second),
               "truncated in its length");
  EXPECT_ERROR(parse(text.substr(0, text.size() - 1)), code, "is truncated");
  std::string flipped = text;
  flipped[second + 13] ^= 1;
  EXPECT_ERROR(parse(flipped), code, fmt::format("byte {}", second), "damaged");
  flipped = text;
  flipped[0] ^= 1;
  EXPECT_ERROR(parse(flipped), code, "byte 0", "no TFRecord file");
  EXPECT_ERROR(parse("\x1f\x8b\x08 and so on"), code, "compressed", "gunzip");
}

TEST(Example, HoldsFeaturesOfThreeKinds) {
  const std::string reals = std::string("\x00\x00\x80\x3f\x00\x00\x00\xc0", 8);  // 1, -2
  const std::string minus_one = std::string(9, '\xff') + '\x01';
  const std::string text =
      example(bytes_feature("image", "pixels") + feature("packed", '\x12', field('\x0a', reals)) +
              feature("apart", '\x12', "\x0d" + reals.substr(0, 4) + "\x0d" + reals.substr(4)) +
              feature("numbers", '\x1a', field('\x0a', "\xac\x02" + minus_one)) +
              feature("number", '\x1a', "\x08\x07") + feature("nothing", '\x1a', ""));
  const Features features = parse_example(as_bytes(text), "x");
  ASSERT_EQ(features.size(), 6U);
  EXPECT_EQ(text_of(features.at("image").bytes.at(0)), "pixels");
  EXPECT_EQ(features.at("packed").reals, (std::vector<float>{1, -2}));
  EXPECT_EQ(features.at("apart").reals, (std::vector<float>{1, -2}));
  EXPECT_EQ(features.at("numbers").integers, (std::vector<int64_t>{300, -1}));
  EXPECT_EQ(features.at("number").integers, (std::vector<int64_t>{7}));
  EXPECT_TRUE(features.at("nothing").integers.empty());
  EXPECT_TRUE(parse_example({}, "x").empty());
}

TEST(Example, RefusesWhatIsCutOff) {
  const std::string text = image_example("pixels", 3);
  const auto parse_text = [](const std::string& part) { return parse_example(as_bytes(part), "a, byte 12"); };
  for (size_t size = 1; size < text.size(); ++size)
    EXPECT_ERROR(parse_text(text.substr(0, size)), ErrorCode::invalid_file, "a, byte 12", "cut off");
  EXPECT_ERROR(parse_text(std::string(11, '\xff')), ErrorCode::invalid_file, "does not end");
  EXPECT_ERROR(parse_text("\x0b"), ErrorCode::invalid_file, "unknown type");
}

std::string image() {
  return text_of(encode_png(std::vector<uint8_t>(12, 9), {2, 2, 3}));
}

TEST(TfRecordShards, AreReadAsImageNetsAre) {
  const TemporaryFolder folder;
  write_file(folder / "train-00001-of-00002", record(image_example(image(), 5)));
  write_file(folder / "train-00000-of-00002",
             record(image_example("other", 1)) + record(image_example(image(), 2)));
  write_file(folder / "validation-00000-of-00001", record(image_example(image(), 3)));
  write_file(folder / "readme.txt", "no records");
  const TfRecordOptions from_one{.first_label = 1};
  for (int pass = 0; pass < 2; ++pass) {  // the second time by the index
    const auto training = open_tfrecords(folder.path(), {}, from_one);
    ASSERT_EQ(training->size(), 3);
    EXPECT_EQ(training->label(0), 0);
    EXPECT_EQ(training->label(2), 4);
    EXPECT_EQ(text_of(training->bytes(0)), "other");
    EXPECT_EQ(text_of(training->bytes(2)), image());
    EXPECT_NE(training->name(2).find("train-00001-of-00002, byte "), std::string::npos);
    EXPECT_TRUE(std::filesystem::exists(folder / "train-index.safetensors"));
    const auto test = open_tfrecords(folder.path(), {.split = Split::test}, from_one);
    ASSERT_EQ(test->size(), 1);
    EXPECT_EQ(test->label(0), 2);
  }
  // An index that was made otherwise does not count.
  EXPECT_EQ(open_tfrecords(folder.path())->label(0), 1);
  EXPECT_TRUE(has_part(folder.path(), Split::test));
  EXPECT_EQ(open_samples(folder.path())->size(), 3);
}

TEST(TfRecordShards, RefuseWhatIsIncomplete) {
  const TemporaryFolder folder;
  const auto open = [&](const std::string& text, const TfRecordOptions& options = {}) {
    write_file(folder / "a.tfrecord", text);
    open_tfrecords(folder.path(), {.test_share = 0}, options);
  };
  const auto code = ErrorCode::invalid_file;
  EXPECT_ERROR(open_tfrecords(folder.path()), code, "no TFRecord files", ".tfrecord");
  EXPECT_ERROR(open(""), code, "hold no images");
  EXPECT_ERROR(open(record(example(bytes_feature("image/encodet", image())))), code, "a.tfrecord, byte 12",
               "no feature 'image/encoded', did you mean 'image/encodet'?");
  EXPECT_ERROR(open(record(example(bytes_feature("image/encoded", image())))), code,
               "no feature 'image/class/label'");
  EXPECT_ERROR(open(record(image_example("", 1))), code, "is not one image");
  EXPECT_ERROR(open(record(image_example(image(), 0)), {.first_label = 1}), code, "1 or more");
  EXPECT_ERROR(open(record(image_example(image(), 0)), {.first_label = -1}), ErrorCode::invalid_argument,
               "first label");
  open(record(image_example(image(), 0)));
}

}  // namespace
}  // namespace tessera::data
