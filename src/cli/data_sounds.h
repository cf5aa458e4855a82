// What `tessera data` does with folders of sounds.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "tessera/report/pictures.h"

#include "cli/data_parts.h"
#include "cli/json.h"

namespace tessera::cli {

// What is said in sounds.
struct TranscriptFindings {
  int64_t count = 0;  // of sounds that have a transcript
  int64_t empty = 0;  // of them without a word
  int64_t words = 0;
  std::set<std::string> characters;
};

// What was found in a part of the data.
struct SoundFindings {
  std::vector<int64_t> of_class;
  std::map<std::string, int64_t> formats;
  std::map<int64_t, int64_t> rates;
  std::vector<double> seconds;
  int64_t bytes = 0;
  int64_t of_several_channels = 0;
  TranscriptFindings transcripts;
  std::map<int64_t, std::string> broken;  // by sample; also those that are not as long as their list says
  std::vector<std::string> shards;        // faults of
};
// Reads all samples unless headers are enough.
SoundFindings inspect_sounds(const DataPart& part, bool headers);
nlohmann::json to_json(const DataPart& part, const SoundFindings& findings);
void print(const DataPart& part, const SoundFindings& findings);

// The spectrogram of the first seconds of a sound, with what it is of below it.
report::Picture sound_picture(const DataPart& part, int64_t index);

}  // namespace tessera::cli
