#include "cli/data_sounds.h"

#include <algorithm>
#include <cmath>
#include <mutex>

#include <fmt/ranges.h>

#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/data/shards.h"
#include "tessera/data/sound.h"
#include "tessera/tasks/sound_classification.h"

#include "cli/data_annotations.h"

namespace tessera::cli {
namespace {

constexpr int64_t kShownSeconds = 4;
constexpr int64_t kShownRate = 16000;
constexpr int64_t kShownHop = 160;
constexpr size_t kShownCharacters = 80;   // of a transcript
constexpr double kLengthTolerance = 0.1;  // seconds between a list and a file

// The characters of a text in UTF-8, which a byte of continuation does not begin.
std::vector<std::string> characters_of(const std::string& text) {
  std::vector<std::string> characters;
  for (const char c : text) {
    if (characters.empty() || (static_cast<unsigned char>(c) & 0xc0) != 0x80) characters.emplace_back();
    characters.back() += c;
  }
  return characters;
}

void add(TranscriptFindings& findings, const std::string& text) {
  ++findings.count;
  int64_t words = 0;
  for (size_t i = 0; i < text.size(); ++i) words += !is_space(text[i]) && (i == 0 || is_space(text[i - 1]));
  findings.words += words;
  findings.empty += words == 0 ? 1 : 0;
  for (std::string& character : characters_of(text)) findings.characters.insert(std::move(character));
}

// No more of it than a caption has room for.
std::string beginning_of(const std::string& text) {
  const std::vector<std::string> characters = characters_of(text);
  if (characters.size() <= kShownCharacters) return text;
  return fmt::format("{}…", fmt::join(characters.begin(), characters.begin() + kShownCharacters, ""));
}

}  // namespace

SoundFindings inspect_sounds(const DataPart& part, bool headers) {
  SoundFindings findings;
  findings.of_class.resize(part.samples->class_names().size());
  std::mutex mutex;
  const auto look_at = [&](int64_t index) {
    const std::vector<std::byte> bytes = part.samples->bytes(index);
    const std::string name = part.samples->name(index);
    data::EncodedSound sound(bytes, name);
    const data::SoundInfo info = sound.info();
    if (const auto listed = part.samples->seconds(index)) {
      require(std::abs(*listed - info.seconds()) <= kLengthTolerance, ErrorCode::invalid_file,
              "{}: takes {:.2f} seconds, {:.2f} by its list", name, info.seconds(), *listed);
    }
    const std::optional<std::string> transcript = part.samples->transcript(index);
    if (!headers) {
      std::vector<float> samples(static_cast<size_t>(info.frames));
      sound.decode(info.rate, 0, samples);
    }
    const std::lock_guard lock(mutex);
    if (const int32_t label = part.samples->label(index); label >= 0)
      ++findings.of_class[static_cast<size_t>(label)];
    if (transcript) add(findings.transcripts, *transcript);
    ++findings.formats[info.format];
    ++findings.rates[info.rate];
    findings.seconds.push_back(info.seconds());
    findings.bytes += std::ssize(bytes);
    findings.of_several_channels += info.channels > 1 ? 1 : 0;
  };
  findings.broken = visit_samples(part, look_at);
  if (!headers) findings.shards = data::check_shards(part.folder);
  return findings;
}

nlohmann::json to_json(const DataPart& part, const SoundFindings& findings) {
  nlohmann::json classes = nlohmann::json::object();
  for (size_t i = 0; i < findings.of_class.size(); ++i)
    classes[part.samples->class_names()[i]] = findings.of_class[i];
  nlohmann::json rates = nlohmann::json::object();
  for (const auto& [rate, count] : findings.rates) rates[std::to_string(rate)] = count;
  nlohmann::json broken = nlohmann::json::array();
  for (const auto& [index, message] : findings.broken) broken.push_back(message);
  return {{"sounds", part.samples->size()},
          {"classes", classes},
          {"formats", findings.formats},
          {"rates", rates},
          {"bytes", findings.bytes},
          {"of_several_channels", findings.of_several_channels},
          {"seconds", spread(findings.seconds)},
          {"transcripts", findings.transcripts.count},
          {"empty_transcripts", findings.transcripts.empty},
          {"words", findings.transcripts.words},
          {"characters", findings.transcripts.characters},
          {"broken", broken},
          {"broken_shards", findings.shards}};
}

void print(const DataPart& part, const SoundFindings& findings) {
  double total = 0;
  for (const double seconds : findings.seconds) total += seconds;
  fmt::print("{}: {} sounds of {} classes, {:.1f} minutes, {}\n", part.name, part.samples->size(),
             part.samples->class_names().size(), total / 60,
             format_bytes(static_cast<double>(findings.bytes)));
  if (!findings.of_class.empty()) {
    const auto [fewest, middle, most] = spread(findings.of_class);
    fmt::print("  sounds of a class: {} to {}, half of them have {} or fewer\n", fewest, most, middle);
  }
  for (const auto& [format, count] : findings.formats) fmt::print("  {}: {}\n", format, count);
  for (const auto& [rate, count] : findings.rates) fmt::print("  {} samples a second: {}\n", rate, count);
  const auto seconds = spread(findings.seconds);
  fmt::print("  {:.2f} to {:.2f} seconds, middle {:.2f}\n", seconds[0], seconds[2], seconds[1]);
  if (findings.of_several_channels > 0)
    fmt::print("  {} have more than one channel\n", findings.of_several_channels);
  if (const TranscriptFindings& transcripts = findings.transcripts; transcripts.count > 0) {
    fmt::print("  {} have transcripts, of {} words and {} different characters; {} of them are empty\n",
               transcripts.count, transcripts.words, transcripts.characters.size(), transcripts.empty);
  }
  fmt::print("  {} cannot be read\n", findings.broken.size());
  for (const auto& [index, message] : findings.broken) fmt::print("    {}\n", message);
  for (const std::string& fault : findings.shards) fmt::print("    {}\n", fault);
}

report::Picture sound_picture(const DataPart& part, int64_t index) {
  const std::vector<std::byte> bytes = part.samples->bytes(index);
  data::EncodedSound sound(bytes, part.samples->name(index));
  const int64_t frames = std::min(sound.frames_at(kShownRate), kShownSeconds * kShownRate);
  std::vector<float> samples(static_cast<size_t>(frames));
  sound.decode(kShownRate, 0, samples);
  std::vector<int16_t> steps(static_cast<size_t>((frames + kShownHop - 1) / kShownHop * kShownHop));
  std::ranges::transform(samples, steps.begin(), data::to_int16);
  report::Picture picture = tasks::spectrogram_picture(steps, kShownHop, {.rate = kShownRate});
  std::string caption = part.class_of(index);
  if (const auto transcript = part.samples->transcript(index)) {
    caption += caption.empty() ? "" : ": ";
    caption += beginning_of(*transcript);
  }
  picture.caption = fmt::format("{}, {:.1f} s", caption, sound.info().seconds());
  return picture;
}

}  // namespace tessera::cli
