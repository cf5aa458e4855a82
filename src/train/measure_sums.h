// Sums of a training's measures over batches.
#pragma once

#include <map>
#include <string>

#include "tessera/train/history.h"

namespace tessera::train {

class MeasureSums {
 public:
  void add(const std::string& measure, double sum, double weight) {
    Sum& known = sums_[measure];
    known.sum += sum;
    known.weight += weight;
  }
  // Not a number where nothing counted.
  Numbers means() const {
    Numbers means;
    for (const auto& [measure, known] : sums_) means[measure] = known.sum / known.weight;
    return means;
  }
  void clear() { sums_.clear(); }

 private:
  struct Sum {
    double sum = 0;
    double weight = 0;
  };
  std::map<std::string, Sum> sums_;
};

}  // namespace tessera::train
