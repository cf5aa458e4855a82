// What readers of encoded samples share.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tessera/base/error.h"
#include "tessera/data/encoded.h"

#include "data/batches.h"

namespace tessera::data {

inline constexpr std::array kTestFolders{"val", "validation", "test"};  // beside "train"
inline constexpr uint64_t kLargestEncodedImage = uint64_t{1} << 30;     // bytes

bool has_image_ending(const std::filesystem::path& path);

// Those of a split by share: of each class so many for the test, evenly spread over its samples. Samples have
// a member `label`. Throws Error(invalid_argument) when the share is out of range, Error(invalid_file) when
// nothing is left.
template <typename Sample>
std::vector<Sample> part_of(const std::vector<Sample>& samples, const SplitOptions& options,
                            const std::string& name) {
  require(options.test_share >= 0 && options.test_share < 1, ErrorCode::invalid_argument,
          "the share of the test is {}, expected at least 0 and below 1", options.test_share);
  std::map<int32_t, int64_t> seen;
  std::vector<Sample> part;
  for (const Sample& sample : samples) {
    const bool held = is_held_out(seen[sample.label]++, options.test_share);
    if (held == (options.split == Split::test)) part.push_back(sample);
  }
  require(!part.empty(), ErrorCode::invalid_file, "{}: {} of {} samples leave none for {}", name,
          options.test_share, samples.size(), options.split == Split::test ? "the test" : "training");
  return part;
}

}  // namespace tessera::data
