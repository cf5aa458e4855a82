#include "tessera/data/transcripts.h"

#include <atomic>

#include <gtest/gtest.h>

#include "tessera/base/file.h"
#include "tessera/data/shards.h"
#include "tessera/data/sounds.h"

#include "support/expect_error.h"
#include "support/sound_file.h"
#include "support/temporary_folder.h"

namespace tessera::data {
namespace {

namespace fs = std::filesystem;
using testing::TemporaryFolder;
using testing::tone;
using testing::write_sound;

constexpr auto kInvalid = ErrorCode::invalid_file;
constexpr SplitOptions kAll{.test_share = 0};

void write_short_sound(const fs::path& path, double seconds = 0.25) {
  write_sound(path, tone(400, seconds, 8000), 8000, 1,
              (path.extension() == ".flac" ? SF_FORMAT_FLAC : SF_FORMAT_WAV) | SF_FORMAT_PCM_16);
}

std::vector<std::string> texts_of(const EncodedSamples& samples) {
  std::vector<std::string> texts;
  for (int64_t i = 0; i < samples.size(); ++i) texts.push_back(samples.transcript(i).value_or("none"));
  return texts;
}

using Texts = std::vector<std::string>;

TEST(Transcripts, AreThoseOfLibriSpeechsLists) {
  const TemporaryFolder folder;
  for (const char* name : {"84/1/84-1-0000.flac", "84/1/84-1-0001.flac", "9/2/9-2-0000.flac"})
    write_short_sound(folder / name);
  write_file(folder / "84/1/84-1.trans.txt", "84-1-0001 IT IS SO\r\n84-1-0000  GO  ON \n\n");
  write_file(folder / "9/2/9-2.trans.txt", "9-2-0000 WHY");
  EXPECT_TRUE(holds_transcripts(folder.path()));
  const auto samples = open_transcribed_sounds(folder.path(), kAll);
  EXPECT_EQ(texts_of(*samples), (Texts{"GO  ON", "IT IS SO", "WHY"}));
  EXPECT_EQ(samples->label(0), -1);
  EXPECT_TRUE(samples->class_names().empty());
  EXPECT_TRUE(samples->name(2).ends_with("9/2/9-2-0000.flac"));
  EXPECT_EQ(samples->bytes(2), read_file(folder / "9/2/9-2-0000.flac"));
  EXPECT_EQ(texts_of(*open_transcribed_sounds(folder.path(), {.split = Split::test, .test_share = 0.34})),
            Texts{"WHY"});
  write_file(folder / "9/2/9-2.trans.txt", "9-2-0000 WHY\n9-2-0001 NOT");
  EXPECT_ERROR(open_transcribed_sounds(folder.path()), kInvalid, "9-2.trans.txt: names '9-2-0001'",
               "not there");
  write_file(folder / "9/2/9-2.trans.txt", "");
  EXPECT_ERROR(open_transcribed_sounds(folder.path()), kInvalid, "9-2-0000.flac: has no transcript",
               "9-2-0000.txt");
}

TEST(Transcripts, AreFilesBesideTheSounds) {
  const TemporaryFolder folder;
  for (const char* name : {"train/b.wav", "train/a.flac", "val/c.wav"}) write_short_sound(folder / name);
  write_file(folder / "train/a.txt", "\n first \n");
  write_file(folder / "train/b.txt", "");
  write_file(folder / "val/c.txt", "third");
  EXPECT_TRUE(holds_transcripts(folder.path()));
  EXPECT_EQ(texts_of(*open_transcribed_sounds(folder.path())), (Texts{"first", ""}));
  EXPECT_EQ(texts_of(*open_transcribed_sounds(folder.path(), {.split = Split::test})), Texts{"third"});
  const TemporaryFolder elsewhere;
  write_file(elsewhere / "secret", "text");
  fs::remove(folder / "val/c.txt");
  fs::create_symlink(elsewhere / "secret", folder / "val/c.txt");
  EXPECT_ERROR(open_transcribed_sounds(folder.path(), {.split = Split::test}), kInvalid, "c.txt",
               "out of the folder");
  fs::remove_all(folder.path());
  fs::create_directories(folder.path());
  EXPECT_ERROR(open_transcribed_sounds(folder.path()), kInvalid, "no sounds with transcripts");
  EXPECT_ERROR(open_transcribed_sounds(folder / "none"), ErrorCode::io, "none: no such folder");
}

TEST(Transcripts, AreThoseOfLists) {
  const TemporaryFolder folder;
  for (const char* name : {"clips/a.wav", "clips/b.wav", "clips/c.wav"}) write_short_sound(folder / name);
  write_file(folder / "train.jsonl", R"({"audio": "clips/b.wav", "text": "second ", "duration": 0.25})"
                                     "\n\n"
                                     R"({"audio_filepath": "clips/a.wav", "text": "f\u00fcrst"})");
  write_file(folder / "val.jsonl", R"({"audio": "clips/c.wav", "text": ""})");
  EXPECT_TRUE(has_part(folder.path(), Split::test));
  EXPECT_TRUE(holds_transcripts(folder.path()));
  const auto samples = open_transcribed_sounds(folder.path());
  EXPECT_EQ(texts_of(*samples), (Texts{"second", "fürst"}));
  EXPECT_EQ(samples->seconds(0), 0.25);
  EXPECT_EQ(samples->seconds(1), std::nullopt);
  EXPECT_EQ(texts_of(*open_transcribed_sounds(folder.path(), {.split = Split::test})), Texts{""});
  fs::remove(folder / "val.jsonl");
  EXPECT_FALSE(has_part(folder.path(), Split::test));
  EXPECT_EQ(texts_of(*open_transcribed_sounds(folder.path(), {.split = Split::test, .test_share = 0.5})),
            Texts{"fürst"});
  const TemporaryFolder elsewhere;
  write_short_sound(elsewhere / "x.wav");
  fs::create_symlink(elsewhere / "x.wav", folder / "clips/x.wav");
  write_file(folder / "train.jsonl", R"({"audio": "clips/x.wav", "text": ""})");
  EXPECT_ERROR(open_transcribed_sounds(folder.path()), kInvalid, "x.wav", "out of the folder");
  write_file(folder / "train.jsonl", R"({"audio": "clips/d.wav", "text": ""})");
  EXPECT_ERROR(open_transcribed_sounds(folder.path()), kInvalid, "train.jsonl: names 'clips/d.wav'");
}

TEST(Transcripts, OfBrokenListsAreRefused) {
  const auto list = [](const std::string& text) { return parse_sound_list(text, "x.jsonl"); };
  const std::string right = R"({"audio": "a.wav", "text": "a"})";
  EXPECT_EQ(list(right + "\n" + right).size(), 2U);
  EXPECT_ERROR(list(right + "\nnonsense"), kInvalid, "x.jsonl: line 2 is no JSON object");
  EXPECT_ERROR(list("[1]"), kInvalid, "line 1 is no JSON object");
  EXPECT_ERROR(list(R"({"text": "a"})"), kInvalid, "line 1 has no text 'audio'");
  EXPECT_ERROR(list(R"({"audio": 5, "text": "a"})"), kInvalid, "no text 'audio'");
  EXPECT_ERROR(list(R"({"audio": "a.wav"})"), kInvalid, "no text 'text'");
  for (const char* name : {"/a.wav", "../a.wav", "b/../../a.wav", ""})
    EXPECT_ERROR(list(fmt::format(R"({{"audio": "{}", "text": "a"}})", name)), kInvalid, "leads out");
  for (const char* seconds : {"-1", "0", "1e300", "\"1\""})
    EXPECT_ERROR(list(fmt::format(R"({{"audio": "a", "text": "a", "duration": {}}})", seconds)), kInvalid,
                 "'duration' is");
  const auto transcripts = [](const std::string& text) { return parse_transcripts(text, "x.trans.txt"); };
  EXPECT_ERROR(transcripts("a b\nc"), kInvalid, "x.trans.txt: line 2 has no text");
  EXPECT_ERROR(transcripts("../a b"), kInvalid, "'../a' is no name");
  EXPECT_ERROR(transcripts("a b\na c"), kInvalid, "line 2: 'a' was there before");
}

// A row's length follows from the list where that tells of it, and from the file otherwise.
TEST(Transcripts, OfListsTellHowLongSoundsAre) {
  const TemporaryFolder folder;
  write_short_sound(folder / "a.wav", 0.25);
  write_short_sound(folder / "b.wav", 0.25);
  write_file(folder / "all.jsonl", R"({"audio": "a.wav", "text": "", "duration": 0.75})"
                                   "\n"
                                   R"({"audio": "b.wav", "text": ""})");
  const SoundExamples examples(open_transcribed_sounds(folder.path(), kAll),
                               {.rate = 8000, .hop = 80, .seconds = {0.5, 1}});
  EXPECT_EQ(examples.bucket_of(0), 1);
  EXPECT_EQ(examples.bucket_of(1), 0);
}

// The same samples, and how often one was read.
class CountedReads : public EncodedSamples {
 public:
  explicit CountedReads(std::shared_ptr<const EncodedSamples> samples) : samples_(std::move(samples)) {}
  int64_t size() const override { return samples_->size(); }
  int32_t label(int64_t index) const override { return samples_->label(index); }
  std::string name(int64_t index) const override { return samples_->name(index); }
  const std::vector<std::string>& class_names() const override { return samples_->class_names(); }
  std::vector<std::byte> bytes(int64_t index) const override {
    ++reads;
    return samples_->bytes(index);
  }
  std::optional<double> seconds(int64_t index) const override { return samples_->seconds(index); }
  mutable std::atomic<int64_t> reads{0};

 private:
  std::shared_ptr<const EncodedSamples> samples_;
};

class SoundShards : public ::testing::Test {
 protected:
  SoundShards() {
    for (const char* name : {"sounds/a.wav", "sounds/b.flac"}) write_short_sound(folder_ / name);
    write_short_sound(folder_ / "sounds/c.ogg.wav");
    write_file(folder_ / "sounds/a.txt", "first");
    write_file(folder_ / "sounds/b.txt", "second");
    write_file(folder_ / "sounds/c.ogg.txt", "");
  }
  TemporaryFolder folder_;
};

TEST_F(SoundShards, HoldTheTranscriptsOfSounds) {
  const auto samples = open_sounds(folder_ / "sounds", kAll);
  const PackResult result = pack_shards(*samples, folder_ / "shards");
  EXPECT_TRUE(result.completed);
  EXPECT_TRUE(check_shards(folder_ / "shards").empty());
  EXPECT_TRUE(holds_sounds(folder_ / "shards"));
  for (int pass = 0; pass < 2; ++pass) {  // the second time by the index
    const auto read = open_sounds(folder_ / "shards", kAll);
    ASSERT_EQ(read->size(), 3);
    EXPECT_EQ(texts_of(*read), (Texts{"first", "second", ""}));
    EXPECT_EQ(read->label(0), -1);
    for (int64_t i = 0; i < 3; ++i) EXPECT_EQ(read->bytes(i), samples->bytes(i));
  }
  EXPECT_ERROR(open_labeled_sounds(folder_ / "shards", kAll), kInvalid, "transcripts and no class");
  EXPECT_ERROR(open_tar_shards(folder_ / "shards", kAll), kInvalid, "hold no images");
  // Shards of other transcripts are not gone on with.
  write_file(folder_ / "sounds/a.txt", "another");
  EXPECT_ERROR(pack_shards(*open_sounds(folder_ / "sounds", kAll), folder_ / "shards"), kInvalid,
               "other samples");
}

// Rows of several lengths are those of the folder's sounds, and no sound is read for them.
TEST_F(SoundShards, KeepTheLengthsOfSoundsInTheirIndex) {
  write_sound(folder_ / "classes/high/1.wav", std::vector<float>(4001, 0.5F), 8000);
  write_sound(folder_ / "classes/high/2.wav", std::vector<float>(4410, 0.5F), 11025);  // to 3,200
  write_sound(folder_ / "classes/high/3.wav", std::vector<float>(4411, 0.5F), 11025);  // to 3,201
  write_file(folder_ / "classes/high/4.wav", "RIFF and no more");
  const auto samples = open_labeled_sounds(folder_ / "classes", kAll);
  pack_shards(*samples, folder_ / "shards", {.unknown_ending = "wav"});
  const SoundExampleOptions options{.rate = 8000, .hop = 80, .seconds = {0.4, 0.5, 1}};
  const SoundExamples of_files(samples, options);
  for (int pass = 0; pass < 2; ++pass) {  // the second time by the index
    const auto counted = std::make_shared<CountedReads>(open_labeled_sounds(folder_ / "shards", kAll));
    const SoundExamples of_shards(counted, options);
    EXPECT_EQ(counted->reads, 1);  // of what is broken
    for (int64_t i = 0; i < 4; ++i) EXPECT_EQ(of_shards.bucket_of(i), of_files.bucket_of(i)) << i;
    EXPECT_EQ(of_shards.bucket_of(0), 2);
    EXPECT_EQ(of_shards.bucket_of(1), 0);
    EXPECT_EQ(of_shards.bucket_of(2), 1);
  }
}

TEST_F(SoundShards, HoldTheClassesOfSounds) {
  write_short_sound(folder_ / "classes/high/1.wav");
  write_short_sound(folder_ / "classes/low/1.flac");
  const auto samples = open_labeled_sounds(folder_ / "classes", kAll);
  pack_shards(*samples, folder_ / "shards");
  const auto read = open_labeled_sounds(folder_ / "shards", kAll);
  EXPECT_EQ(read->class_names(), (std::vector<std::string>{"high", "low"}));
  ASSERT_EQ(read->size(), 2);
  EXPECT_EQ(read->label(1), 1);
  EXPECT_EQ(read->bytes(1), samples->bytes(1));
  EXPECT_EQ(read->transcript(1), std::nullopt);
}

}  // namespace
}  // namespace tessera::data
