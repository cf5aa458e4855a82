// report.html: one file that shows a run in any browser, without a network and without anything beside it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tessera/train/machine.h"
#include "tessera/train/summary.h"

namespace tessera::train {

// A test image that the network got wrong.
struct Mistake {
  std::vector<uint8_t> pixels = {};  // [height, width, channels]; grey, RGB, or shown by the first channel
  int64_t height = 0;
  int64_t width = 0;
  int64_t channels = 1;
  int64_t index = 0;  // in the test data
  int64_t truth = 0;  // classes by number
  int64_t prediction = 0;
  double confidence = 0;  // probability given to the prediction, 0..1
};

struct Report {
  std::string data = {};  // what it was trained on, "Fashion-MNIST"; may be empty
  std::string date = {};  // when it ended, "2026-03-14 15:09"; may be empty
  RunSummary summary = {};
  RunHistory history = {};
  MachineInfo machine = {};
  std::string recipe = {};                // TOML, as to_toml() prints it
  std::vector<std::string> classes = {};  // names; a class beyond the last is called by its number
  // Test images by {truth, prediction}, where there are any: as many entries as images at most, however many
  // the classes. Empty when there was no evaluation.
  std::map<std::pair<int64_t, int64_t>, int64_t> confusion = {};
  std::vector<Mistake> mistakes = {};  // worst first
};

// The page, UTF-8. All text is escaped. Parts without data are left out. Throws Error(invalid_argument) when
// a class of the confusions is negative or a picture's shape and pixels disagree.
std::string render_report(const Report& report);

// render_report() into a file, complete or not at all. Also throws Error(io).
void write_report(const std::filesystem::path& path, const Report& report);

}  // namespace tessera::train
