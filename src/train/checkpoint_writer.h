// When a running training saves its state, and which of the saved ones stay.
#pragma once

#include <cstdint>
#include <filesystem>

#include "tessera/base/clock.h"
#include "tessera/train/trainer.h"

namespace tessera::train {

class CheckpointWriter {
 public:
  // Of several ranks each has one, with the same options, and calls what the others call; null: there are
  // none.
  CheckpointWriter(const FitOptions& options, int64_t step, Communicator* communicator);

  // Whether rank 0 has a folder to save in.
  bool enabled() const { return enabled_; }
  // By updates made or by time: whether the state after that many updates is one to save. Ranks whose clocks
  // differ are to agree on it.
  bool due(int64_t step) const;
  // The same at the end of an epoch, which may be one to save by itself. All ranks say the same.
  bool due_after_epoch(int64_t epoch, int64_t step) const;

  // last.safetensors, whole or not at all; the one before becomes step-N.safetensors where it is kept. All
  // ranks write it, in the folder of rank 0. Throws what saving throws, except Error(io) unless `must`: a
  // disk that is full may have room again at the next checkpoint.
  void save(const CheckpointSource& state, int64_t step, bool must);
  // best.safetensors, which rank 0 writes; false where that was not possible, and on other ranks.
  bool save_best(const CheckpointSource& weights) const;

 private:
  bool is_first() const { return communicator_ == nullptr || communicator_->rank() == 0; }
  std::filesystem::path prepare(int64_t step) const;
  void keep_previous(int64_t step) const;
  void remove_old(int64_t step) const;

  const FitOptions& options_;
  int64_t attempted_step_;
  Communicator* communicator_;
  bool enabled_;
  Clock::time_point attempted_ = Clock::now();
};

}  // namespace tessera::train
