// Parts of a report that evaluators make of what they found.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tessera/train/evaluator.h"

namespace tessera::report {

struct Picture {
  std::vector<uint8_t> pixels = {};  // [height, width, channels]; grey, RGB, or shown by the first channel
  int64_t height = 0;
  int64_t width = 0;
  int64_t channels = 1;
  std::string caption = {};  // of a picture in a gallery
};

// An example that a classifier got wrong.
struct Mistake {
  Picture picture = {};
  int64_t index = 0;  // in the test data
  int64_t truth = 0;  // classes by number
  int64_t prediction = 0;
  double confidence = 0;  // probability given to the prediction, 0..1
};

// Examples by {truth, prediction}, where there are any: as many entries as examples at most, however many the
// classes.
using Confusion = std::map<std::pair<int64_t, int64_t>, int64_t>;

// A matrix for few classes; for many, the pairs most often confused. `classes` names them; a class beyond the
// last is called by its number. Throws Error(invalid_argument) when a class is negative.
train::ReportSection confusion_section(const std::vector<std::string>& classes, const Confusion& confusion);

// In the order given, the worst first. Throws Error(invalid_argument) when a picture's extents and pixels
// disagree.
train::ReportSection mistakes_section(const std::vector<std::string>& classes,
                                      const std::vector<Mistake>& mistakes);

// Pictures side by side, as they come, with what is to be said of each below it. Throws as
// mistakes_section().
train::ReportSection gallery_section(const std::string& title, const std::string& note,
                                     const std::vector<Picture>& pictures);

// What is to be told of the data, a paragraph each.
train::ReportSection remarks_section(const std::vector<std::string>& remarks);

}  // namespace tessera::report
