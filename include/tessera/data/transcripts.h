// Sounds with what is said in them.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/data/encoded.h"

namespace tessera::data {

// A line of a list of sounds.
struct ListedSound {
  std::string file;  // below the folder of the list
  std::string text;
  std::optional<double> seconds = {};
};

// JSON objects, one a line: `audio` (or `audio_filepath`, as NeMo calls it), `text`, and perhaps `duration`
// in seconds. Empty lines count nothing. Throws Error(invalid_file) naming the line that is no such object,
// or whose file is absolute or has a part "..".
std::vector<ListedSound> parse_sound_list(std::string_view text, const std::string& name);

// LibriSpeech's lists of transcripts: on each line a sound's name without its ending, a space, and the text.
// Throws Error(invalid_file) naming the line without both, or whose name is a path or was there before.
std::vector<ListedSound> parse_transcripts(std::string_view text, const std::string& name);

// Sounds of no class (label -1) with transcripts, without spaces before and after them. In `folder` are
//   - lists ending in .jsonl of the sounds below it, whose order is kept; of those whose names begin with
//     "train", and with "val" or "test", each is of its split,
//   - or sounds in folders of any depth, in the order of their names: the transcript of each is in
//     LibriSpeech's list beside it (*.trans.txt) or in a file of its own (NAME.txt).
// Splits are as of open_sound_folder() otherwise. Throws Error(io) naming what cannot be read, and
// Error(invalid_file) naming a list's line that is broken, a sound without transcript, one that a list names
// and that is not there, and links that lead out of the folder.
std::shared_ptr<const EncodedSamples> open_transcribed_sounds(const std::filesystem::path& folder,
                                                              const SplitOptions& options = {});

// Whether it is such a folder: it holds a list ending in .jsonl, or its first sound has a transcript.
bool holds_transcripts(const std::filesystem::path& folder);

}  // namespace tessera::data
