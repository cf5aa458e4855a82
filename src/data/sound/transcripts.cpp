#include "tessera/data/transcripts.h"

#include <functional>
#include <set>

#include <nlohmann/json.hpp>

#include "tessera/base/error.h"

#include "data/sample_files.h"

namespace tessera::data {
namespace {

constexpr double kLongestSeconds = 1e6;

// Calls take(line, where) for each that is not empty.
void for_each_line(std::string_view text, const std::string& name,
                   const std::function<void(std::string_view line, const std::string& where)>& take) {
  int64_t number = 0;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string line = trimmed(text.substr(begin, end - begin));
    ++number;
    if (!line.empty()) take(line, fmt::format("{}: line {}", name, number));
    begin = end + 1;
  }
}

std::string text_in(const nlohmann::json& json, const char* field, const std::string& where) {
  const auto found = json.find(field);
  require(found != json.end() && found->is_string(), ErrorCode::invalid_file, "{} has no text '{}'", where,
          field);
  return found->get<std::string>();
}

ListedSound parse_object(std::string_view line, const std::string& where) {
  const nlohmann::json json = nlohmann::json::parse(line, nullptr, false);
  require(json.is_object(), ErrorCode::invalid_file, "{} is no JSON object", where);
  const bool is_nemo = !json.contains("audio") && json.contains("audio_filepath");
  ListedSound sound{.file = text_in(json, is_nemo ? "audio_filepath" : "audio", where),
                    .text = trimmed(text_in(json, "text", where))};
  require(stays_below(sound.file), ErrorCode::invalid_file, "{}: '{}' leads out of the list's folder", where,
          sound.file);
  if (const auto found = json.find("duration"); found != json.end()) {
    require(found->is_number() && found->get<double>() > 0 && found->get<double>() < kLongestSeconds,
            ErrorCode::invalid_file, "{}: 'duration' is {}, expected seconds", where, found->dump());
    sound.seconds = found->get<double>();
  }
  return sound;
}

}  // namespace

std::vector<ListedSound> parse_sound_list(std::string_view text, const std::string& name) {
  std::vector<ListedSound> sounds;
  for_each_line(text, name, [&](std::string_view line, const std::string& where) {
    sounds.push_back(parse_object(line, where));
  });
  return sounds;
}

std::vector<ListedSound> parse_transcripts(std::string_view text, const std::string& name) {
  std::vector<ListedSound> sounds;
  std::set<std::string, std::less<>> names;
  for_each_line(text, name, [&](std::string_view line, const std::string& where) {
    const size_t space = line.find(' ');
    require(space != std::string_view::npos, ErrorCode::invalid_file,
            "{} has no text after the name of its sound", where);
    ListedSound sound{.file = std::string(line.substr(0, space)), .text = trimmed(line.substr(space))};
    require(sound.file.find('/') == std::string::npos && stays_below(sound.file), ErrorCode::invalid_file,
            "{}: '{}' is no name of a sound", where, sound.file);
    require(names.insert(sound.file).second, ErrorCode::invalid_file, "{}: '{}' was there before", where,
            sound.file);
    sounds.push_back(std::move(sound));
  });
  return sounds;
}

}  // namespace tessera::data
