// Times candidate kernels on made-up inputs and remembers the winners in a file.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tessera/compile/device.h"

namespace tessera {

struct TuningResult {
  std::string winner;
  std::map<std::string, double> microseconds;  // by candidate
};

class Tuner {
 public:
  // Reads `file` when it exists; a damaged file or one of another version is ignored with a warning. "" for
  // no file. Without `measure` only remembered results count, and unknown nodes take their first candidate.
  Tuner(Device& device, std::string file, bool measure);

  // The remembered result, or a new measurement: outputs checked against the first candidate's, median of
  // several runs with cold caches. A candidate that fails or disagrees is left out with a warning, and one
  // wins where it is more than noise faster than those before it.
  TuningResult choose(const KernelRequest& request, const std::vector<const KernelCandidate*>& candidates);

  // Writes the file when something new was measured: to a temporary name, then renamed.
  void save() const;

  // Text that identifies a node's work whatever the names in it: the key of the file.
  static std::string key_of(const KernelRequest& request);

 private:
  struct Buffers;

  TuningResult measure(const KernelRequest& request, const std::vector<const KernelCandidate*>& candidates);
  TuningResult measure(const KernelRequest& request, const std::vector<const KernelCandidate*>& candidates,
                       const Buffers& buffers);
  // In microseconds, of runs of `work`, each with `before` in front of it.
  double median_time(const std::function<void()>& before, const std::function<void()>& work);

  Device& device_;
  std::string file_;
  bool measure_;
  std::string device_key_;  // model and library versions
  std::map<std::string, TuningResult> results_;
  bool changed_ = false;
};

}  // namespace tessera
