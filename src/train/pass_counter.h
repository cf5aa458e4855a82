// How far a pass over a source is, by one process or by several ranks that share its batches.
#pragma once

#include <cstdint>

#include "tessera/compile/communicator.h"
#include "tessera/data/source.h"
#include "tessera/train/prediction.h"

namespace tessera::train {

class PassCounter {
 public:
  // Null: one process. All ranks have the same limits.
  PassCounter(Communicator* communicator, const EvaluationLimits& limits);

  data::Partition partition() const;
  bool done() const { return left_ <= 0 || stopped_; }
  // Takes note of a batch; how many of its samples count. All ranks call it for their parts of each batch.
  int64_t count(int64_t samples);
  int64_t samples() const { return samples_; }  // of all ranks

 private:
  Communicator* communicator_;
  EvaluationLimits limits_;
  int64_t left_;
  int64_t samples_ = 0;
  bool stopped_ = false;
};

}  // namespace tessera::train
