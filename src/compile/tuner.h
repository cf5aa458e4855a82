// Times candidate kernels on synthetic inputs and remembers the winners in a file.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tessera/base/tensor.h"
#include "tessera/compile/device.h"

#include "compile/planned_node.h"
#include "compile/tuning_file.h"

namespace tessera {

class Tuner {
 public:
  // Reads `file` when it exists; a damaged file or one of another version is ignored with a warning. "" for
  // no file. Without `measure` only remembered results count, and unknown nodes take their first candidate.
  Tuner(Device& device, std::string file, bool measure);

  // Whether choose() would measure these candidates. Any thread may ask while nobody measures.
  bool measures(const KernelRequest& request, const std::vector<WillingCandidate>& candidates) const;

  // The remembered result, or a new measurement: outputs checked against the first candidate's, median of
  // several runs with cold caches. A candidate that fails or disagrees is left out with a warning, and one
  // wins where it is more than noise faster than those before it. Throws Error(device_fault) naming the
  // kernel and the node; where memory is lacking the first is taken, with a warning, and nothing is
  // remembered.
  TuningResult choose(const KernelRequest& request, const std::vector<WillingCandidate>& candidates);

  // Adds what was measured to the file, which is never half written and loses nothing that another process
  // has added meanwhile. What fails is a warning.
  void save() const;

  // Text that identifies a node's work whatever the names in it: the key of the file.
  static std::string key_of(const KernelRequest& request);

 private:
  struct Buffers;
  // Elements of inputs, by type and place among the inputs.
  using Samples = std::map<std::pair<DataType, size_t>, Tensor>;

  // Null where nothing is remembered of the work, or not of all of these candidates.
  const TuningResult* remembered(const std::string& key,
                                 const std::vector<WillingCandidate>& candidates) const;
  // None where nothing could be measured, which is not remembered: the device lacked memory.
  std::optional<TuningResult> measure(const KernelRequest& request,
                                      const std::vector<WillingCandidate>& candidates);
  TuningResult measure(const KernelRequest& request, const std::vector<WillingCandidate>& candidates,
                       const Buffers& buffers);
  // In microseconds; none where its results are not as expected. The first one's are, from then on.
  std::optional<double> time(const KernelRequest& request, const WillingCandidate& candidate,
                             const Buffers& buffers, void* cache, std::vector<std::vector<double>>& expected);
  // In microseconds, of runs of `work`, each preceded by `before`.
  double median_time(const std::function<void()>& before, const std::function<void()>& work);

  Device& device_;
  std::shared_ptr<Queue> queue_;
  std::string file_;
  bool measure_;
  Samples samples_;
  std::string device_key_;  // model and library versions
  TuningResults results_;
  TuningResults measured_;  // by this one, and not in the file yet
};

}  // namespace tessera
