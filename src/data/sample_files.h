// What readers of encoded samples share.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tessera/base/error.h"
#include "tessera/data/encoded.h"

#include "data/batches.h"

namespace tessera::data {

inline constexpr std::array kTestFolders{"val", "validation", "test"};  // beside "train"
inline constexpr const char* kClassesName = "classes.txt";
inline constexpr uint64_t kLargestSample = uint64_t{1} << 30;      // bytes of a file
inline constexpr uint64_t kLargestTranscript = uint64_t{1} << 20;  // bytes

// What is in a folder of classes, or in tar shards.
struct SampleKind {
  std::string plural;                // "images"
  std::vector<std::string> endings;  // ".jpg", in small letters
  bool transcribed = false;          // whether one may have a transcript, and then no class
  bool has_ending(const std::filesystem::path& path) const;
};
const SampleKind& image_samples();
const SampleKind& sound_samples();

// Entries in the order of their names: that of a folder is the file system's own.
std::vector<std::filesystem::directory_entry> sorted_entries(const std::filesystem::path& folder);
// The regular files of a folder of which that is so, in the order of their names.
std::vector<std::filesystem::path> files_in(const std::filesystem::path& folder,
                                            bool (*is_wanted)(const std::filesystem::path&));
// Whether it is called as a list of sounds with transcripts.
bool is_sound_list(const std::filesystem::path& file);
// Whether it is a file of that kind, or a link to one below `root`, a canonical folder. Throws as
// check_lies_below().
bool is_sample(const std::filesystem::directory_entry& entry, const std::filesystem::path& root,
               const SampleKind& kind);

// Those of the split, where names that begin with "train", and with "val" or "test", tell it; else nothing.
std::vector<std::filesystem::path> of_split(const std::vector<std::filesystem::path>& files, Split split);

// As open_image_folder(), of any kind.
std::shared_ptr<const EncodedSamples> open_folder(const std::filesystem::path& folder, const SampleKind& kind,
                                                  const SplitOptions& options);

// Whether a name in a foreign file stays below the folder that it is relative to: it is not absolute and has
// no part "..".
bool stays_below(const std::string& name);
// Throws Error(invalid_file) where a path, whose links are followed, lies outside of a canonical folder or is
// a folder itself; std::filesystem::filesystem_error where it leads nowhere.
void check_lies_below(const std::filesystem::path& path, const std::filesystem::path& root);

std::vector<std::string> lines_of(const std::string& text);
// Without spaces and ends of lines before and after it.
std::string trimmed(std::string_view text);
// The names of the classes of a folder, one a line of its classes.txt; none where it has no such file.
std::optional<std::vector<std::string>> read_class_list(const std::filesystem::path& folder);

// Those of a split by share: of each class so many for the test, evenly spread over its samples. `label_of`
// says of which class a sample is. Throws Error(invalid_argument) when the share is out of range,
// Error(invalid_file) when nothing is left.
template <typename Sample, typename LabelOf>
std::vector<Sample> part_of(const std::vector<Sample>& samples, const SplitOptions& options,
                            const std::string& name, const LabelOf& label_of) {
  require(options.test_share >= 0 && options.test_share < 1, ErrorCode::invalid_argument,
          "the share of the test is {}, expected at least 0 and below 1", options.test_share);
  std::map<int32_t, int64_t> seen;
  std::vector<Sample> part;
  for (const Sample& sample : samples) {
    const bool held = is_held_out(seen[label_of(sample)]++, options.test_share);
    if (held == (options.split == Split::test)) part.push_back(sample);
  }
  require(!part.empty(), ErrorCode::invalid_file, "{}: {} of {} samples leave none for {}", name,
          options.test_share, samples.size(), options.split == Split::test ? "the test" : "training");
  return part;
}
// Of samples with a member `label`.
template <typename Sample>
std::vector<Sample> part_of(const std::vector<Sample>& samples, const SplitOptions& options,
                            const std::string& name) {
  return part_of(samples, options, name, [](const Sample& sample) { return sample.label; });
}

}  // namespace tessera::data
