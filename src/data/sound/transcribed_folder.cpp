#include <algorithm>
#include <map>
#include <system_error>

#include "tessera/base/error.h"
#include "tessera/base/file.h"
#include "tessera/data/sounds.h"
#include "tessera/data/transcripts.h"

#include "data/sample_files.h"

namespace tessera::data {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kLargestList = uint64_t{1} << 32;  // bytes
constexpr const char* kTranscriptsEnding = ".trans.txt";

struct TranscribedSound {
  fs::path path;                         // below the folder
  std::optional<std::string> text = {};  // without it, in a file of its own
  std::optional<double> seconds = {};
};

bool is_transcript_list(const fs::path& file) {
  return file.native().ends_with(kTranscriptsEnding);
}

fs::path text_beside(fs::path sound) {
  return sound.replace_extension(".txt");
}

class TranscribedSounds : public EncodedSamples {
 public:
  TranscribedSounds(fs::path folder, std::vector<TranscribedSound> sounds)
      : folder_(std::move(folder)), sounds_(std::move(sounds)) {}

  int64_t size() const override { return std::ssize(sounds_); }
  int32_t label(int64_t /*index*/) const override { return -1; }
  std::string name(int64_t index) const override { return path(index).string(); }
  const std::vector<std::string>& class_names() const override { return classes_; }
  std::vector<std::byte> bytes(int64_t index) const override {
    return read_file(path(index), kLargestSample);
  }
  std::optional<std::string> transcript(int64_t index) const override {
    if (const auto& text = sound(index).text) return text;
    return trimmed(read_text_file(text_beside(path(index)), kLargestTranscript));
  }
  std::optional<double> seconds(int64_t index) const override { return sound(index).seconds; }

 private:
  const TranscribedSound& sound(int64_t index) const { return sounds_[static_cast<size_t>(index)]; }
  fs::path path(int64_t index) const { return folder_ / sound(index).path; }

  fs::path folder_;
  std::vector<TranscribedSound> sounds_;
  std::vector<std::string> classes_;
};

std::vector<TranscribedSound> listed_sounds(const fs::path& root, const std::vector<fs::path>& lists) {
  std::vector<TranscribedSound> sounds;
  for (const fs::path& list : lists) {
    for (ListedSound& listed : parse_sound_list(read_text_file(list, kLargestList), list.string())) {
      require(fs::exists(root / listed.file), ErrorCode::invalid_file, "{}: names '{}', which is not there",
              list.string(), listed.file);
      check_lies_below(root / listed.file, root);
      sounds.push_back({listed.file, std::move(listed.text), listed.seconds});
    }
  }
  return sounds;
}

// What LibriSpeech's lists of a folder say of its sounds, by their names without ending.
struct Transcript {
  std::string text;
  std::string list;
};
std::map<std::string, Transcript> transcripts_in(const std::vector<fs::directory_entry>& entries) {
  std::map<std::string, Transcript> transcripts;
  for (const fs::directory_entry& entry : entries) {
    if (!entry.is_regular_file() || !is_transcript_list(entry.path())) continue;
    const std::string name = entry.path().string();
    for (ListedSound& listed : parse_transcripts(read_text_file(entry.path(), kLargestList), name))
      transcripts[listed.file] = {std::move(listed.text), name};
  }
  return transcripts;
}

void collect(const fs::path& folder, const fs::path& root, std::vector<TranscribedSound>& sounds) {
  const std::vector<fs::directory_entry> entries = sorted_entries(folder);
  std::map<std::string, Transcript> transcripts = transcripts_in(entries);
  for (const fs::directory_entry& entry : entries) {
    const fs::path& path = entry.path();
    if (is_sample(entry, root, sound_samples())) {
      sounds.push_back({path.lexically_relative(root)});
      TranscribedSound& sound = sounds.back();
      if (auto listed = transcripts.extract(path.stem().string()); !listed.empty()) {
        sound.text = std::move(listed.mapped().text);
      } else {
        const fs::directory_entry beside(text_beside(path));
        require(beside.is_regular_file(), ErrorCode::invalid_file,
                "{}: has no transcript: neither '{}' beside it nor a *{} that names it", path.string(),
                beside.path().filename().string(), kTranscriptsEnding);
        if (beside.is_symlink()) check_lies_below(beside.path(), root);
      }
    } else if (entry.is_directory()) {
      collect(path, root, sounds);
    }
  }
  for (const auto& [name, transcript] : transcripts)
    fail(ErrorCode::invalid_file, "{}: names '{}', which is not there", transcript.list, name);
}

std::shared_ptr<const EncodedSamples> open_in(const fs::path& folder, const SplitOptions& options) {
  const bool has_lists = !files_in(folder, is_sound_list).empty();
  const SplitFolder part = has_lists ? SplitFolder{.path = folder} : split_folder(folder, options.split);
  const fs::path root = fs::canonical(part.path);
  const std::vector<fs::path> lists = files_in(root, is_sound_list);
  const std::vector<fs::path> own = of_split(lists, options.split);
  std::vector<TranscribedSound> sounds;
  if (lists.empty()) {
    collect(root, root, sounds);
  } else {
    sounds = listed_sounds(root, own.empty() ? lists : own);
  }
  require(!sounds.empty(), ErrorCode::invalid_file, "{}: holds no sounds with transcripts", root.string());
  if (part.whole && own.empty())
    sounds = part_of(sounds, options, root.string(), [](const TranscribedSound&) { return -1; });
  return std::make_shared<TranscribedSounds>(root, std::move(sounds));
}

// Whether it is beside a sound's file.
bool has_transcript(const fs::path& sound) {
  std::error_code ignored;
  if (fs::is_regular_file(text_beside(sound), ignored)) return true;
  return !files_in(sound.parent_path(), is_transcript_list).empty();
}

}  // namespace

std::shared_ptr<const EncodedSamples> open_transcribed_sounds(const fs::path& folder,
                                                              const SplitOptions& options) {
  std::error_code ignored;
  require(fs::is_directory(folder, ignored), ErrorCode::io, "{}: no such folder", folder.string());
  try {
    return open_in(folder, options);
  } catch (const fs::filesystem_error& error) {
    fail(ErrorCode::io, "{}: {}", error.path1().string(), error.code().message());
  }
}

bool holds_transcripts(const fs::path& folder) {
  try {
    if (!files_in(folder, is_sound_list).empty()) return true;
    std::error_code ignored;
    for (const auto& entry : fs::recursive_directory_iterator(folder, ignored)) {
      if (is_sound_list(entry.path())) return true;
      if (sound_samples().has_ending(entry.path())) return has_transcript(entry.path());
    }
  } catch (const fs::filesystem_error&) {  // a folder that cannot be read
  }
  return false;
}

}  // namespace tessera::data
