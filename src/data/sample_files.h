// What readers of encoded samples share.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tessera/base/error.h"
#include "tessera/data/encoded.h"

#include "data/batches.h"

namespace tessera::data {

inline constexpr std::array kTestFolders{"val", "validation", "test"};  // beside "train"
inline constexpr const char* kClassesName = "classes.txt";
inline constexpr uint64_t kLargestSample = uint64_t{1} << 30;  // bytes of a file

// What is in a folder of classes.
struct SampleKind {
  std::string plural;                // "images"
  std::vector<std::string> endings;  // ".jpg", in small letters
  bool has_ending(const std::filesystem::path& path) const;
};
const SampleKind& image_samples();

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
