// The confusion matrix and the worst mistakes of a classifier of images, for its report.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tessera/report/pictures.h"
#include "tessera/train/evaluator.h"

namespace tessera::tasks {

// An example that a classifier got wrong.
struct Mistake {
  report::Picture picture = {};
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

// In the order given, the worst first. Throws as report::picture_source().
train::ReportSection mistakes_section(const std::vector<std::string>& classes,
                                      const std::vector<Mistake>& mistakes);

}  // namespace tessera::tasks
