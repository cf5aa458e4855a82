#include "cli/data_sounds.h"

#include <algorithm>
#include <cmath>
#include <mutex>

#include <fmt/format.h>

#include "tessera/base/text.h"
#include "tessera/data/sound.h"
#include "tessera/tasks/sound_classification.h"

#include "cli/data_annotations.h"

namespace tessera::cli {
namespace {

constexpr int64_t kShownSeconds = 4;
constexpr int64_t kShownRate = 16000;
constexpr int64_t kShownHop = 160;

}  // namespace

SoundFindings inspect_sounds(const DataPart& part, bool headers) {
  SoundFindings findings;
  findings.of_class.resize(part.samples->class_names().size());
  std::mutex mutex;
  const auto look_at = [&](int64_t index) {
    const std::vector<std::byte> bytes = part.samples->bytes(index);
    data::EncodedSound sound(bytes, part.samples->name(index));
    const data::SoundInfo info = sound.info();
    if (!headers) {
      std::vector<float> samples(static_cast<size_t>(info.frames));
      sound.decode(info.rate, 0, samples);
    }
    const std::lock_guard lock(mutex);
    ++findings.of_class[static_cast<size_t>(part.samples->label(index))];
    ++findings.formats[info.format];
    ++findings.rates[info.rate];
    findings.seconds.push_back(info.seconds());
    findings.bytes += std::ssize(bytes);
    findings.of_several_channels += info.channels > 1 ? 1 : 0;
  };
  findings.broken = visit_samples(part, look_at);
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
          {"broken", broken}};
}

void print(const DataPart& part, const SoundFindings& findings) {
  double total = 0;
  for (const double seconds : findings.seconds) total += seconds;
  fmt::print("{}: {} sounds of {} classes, {:.1f} minutes, {}\n", part.name, part.samples->size(),
             part.samples->class_names().size(), total / 60,
             format_bytes(static_cast<double>(findings.bytes)));
  const auto [fewest, middle, most] = spread(findings.of_class);
  fmt::print("  sounds of a class: {} to {}, half of them have {} or fewer\n", fewest, most, middle);
  for (const auto& [format, count] : findings.formats) fmt::print("  {}: {}\n", format, count);
  for (const auto& [rate, count] : findings.rates) fmt::print("  {} samples a second: {}\n", rate, count);
  const auto seconds = spread(findings.seconds);
  fmt::print("  {:.2f} to {:.2f} seconds, middle {:.2f}\n", seconds[0], seconds[2], seconds[1]);
  if (findings.of_several_channels > 0)
    fmt::print("  {} have more than one channel\n", findings.of_several_channels);
  fmt::print("  {} cannot be read\n", findings.broken.size());
  for (const auto& [index, message] : findings.broken) fmt::print("    {}\n", message);
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
  picture.caption = fmt::format("{}, {:.1f} s",
                                part.samples->class_names()[static_cast<size_t>(part.samples->label(index))],
                                sound.info().seconds());
  return picture;
}

}  // namespace tessera::cli
