// How good a network is on a data set.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "tessera/compile/executable.h"
#include "tessera/data/loader.h"

namespace tessera::train {

// One example and what the network said of it.
struct Prediction {
  int64_t index = 0;  // in the data set
  int32_t label = 0;
  int32_t predicted = 0;
  float confidence = 0;  // softmax of the predicted class
  float loss = 0;
};

struct Evaluation {
  double loss = 0;                      // mean
  double accuracy = 0;                  // 0..1
  std::vector<Prediction> predictions;  // in the loader's order
};

// Runs an evaluation graph (train/step.h) that is bound to its variables over one epoch of the loader. Breaks
// off when `stop` is set: the result is then of the examples so far.
Evaluation evaluate(Executable& executable, const data::Loader& loader,
                    const std::atomic<bool>* stop = nullptr);

}  // namespace tessera::train
