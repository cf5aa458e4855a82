// When a running training saves its state, and which of the saved ones stay.
#pragma once

#include <cstdint>
#include <filesystem>

#include "tessera/base/clock.h"
#include "tessera/train/trainer.h"

namespace tessera::train {

class CheckpointWriter {
 public:
  CheckpointWriter(const FitOptions& options, int64_t step) : options_(options), attempted_step_(step) {}

  bool enabled() const { return !options_.checkpoints.empty(); }
  // By updates made or by time: whether the state after that many updates is one to save.
  bool due(int64_t step) const;
  // The same at the end of an epoch, which may be one to save by itself.
  bool due_after_epoch(int64_t epoch, int64_t step) const;

  // last.safetensors, whole or not at all; the one before becomes step-N.safetensors where it is kept. Throws
  // what saving throws, except Error(io) unless `must`: a disk that is full may have room again at the next
  // checkpoint.
  void save(const CheckpointSource& state, int64_t step, bool must);
  // best.safetensors; false where it could not be written.
  bool save_best(const CheckpointSource& weights) const;

 private:
  void keep_previous(int64_t step) const;
  void remove_old(int64_t step) const;

  const FitOptions& options_;
  int64_t attempted_step_;
  Clock::time_point attempted_ = Clock::now();
};

}  // namespace tessera::train
