// Samples that cannot be read: what becomes of them, and which ones they were.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "tessera/base/option.h"

namespace tessera::data {

// What becomes of a sample that cannot be read or decoded.
enum class BrokenSamples : uint8_t {
  fail,     // its error
  skip,     // its row counts nothing: zeros, label -1
  replace,  // the next one in the data that can be read
};
// By its name in recipes: `fail`, `skip` or `replace`.
BrokenSamples broken_samples_of(const std::string& name);
// The key `broken` of recipes, which chooses one.
Option broken_samples_option();

// Reads samples as asked. Safe from several threads at once.
class BrokenRecord {
 public:
  BrokenRecord(BrokenSamples policy, int64_t samples) : policy_(policy), samples_(samples) {}

  // Calls read(index), and where that throws Error(io) or Error(invalid_file) and samples are replaced, of
  // the next ones, after the last the first. False: the sample is skipped. Throws what read threw where the
  // policy is to fail, Error(invalid_file) where a hundred samples in a row are broken.
  bool read(int64_t index, const std::function<void(int64_t index)>& read) const;
  // How many samples were broken, and which, where any were.
  std::vector<std::string> remarks() const;

 private:
  void remember(int64_t index, const std::string& message) const;

  BrokenSamples policy_;
  int64_t samples_;
  mutable std::mutex mutex_;  // guards broken_
  mutable std::map<int64_t, std::string> broken_;
};

}  // namespace tessera::data
