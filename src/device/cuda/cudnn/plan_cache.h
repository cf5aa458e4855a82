// cuDNN's plans for the life of the process, and on disk for the next.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "tessera/base/made_once.h"

#include "device/cuda/codegen/cache_files.h"
#include "device/cuda/cudnn/cudnn_graph.h"

namespace tessera::cuda {

// What makes plans: cuDNN on some GPU. Both refuse, saying why (device/common/refusal.h); what else they
// throw is of the machine. Called by several threads.
struct PlanMaker {
  // All that a plan depends on beside its problem: the card and the libraries' versions.
  std::string versions;
  std::function<std::shared_ptr<CudnnPlan>(const PlanProblem& problem, int64_t choice)> build;
  std::function<std::shared_ptr<CudnnPlan>(const PlanProblem& problem, const SavedPlan& saved)> load;
};

// May be used by several threads; each plan is made once, by whoever needs it first.
class PlanCache {
 public:
  // In memory the outcomes that were asked for last are kept, several networks' worth; kernels keep their
  // plans.
  static constexpr size_t kOutcomes = 8192;

  // The GPU's plans by cuDNN, kept in the standard folder.
  explicit PlanCache(Context& context);
  PlanCache(PlanMaker maker, CacheFiles files, size_t outcomes = kOutcomes)
      : maker_(std::move(maker)), files_(std::move(files)), outcomes_(outcomes) {}

  // From memory, from the files, or built and then kept in both. Refuses with the reason for which it could
  // not be built, which is not kept on disk. Throws what else went wrong, which is not kept at all.
  std::shared_ptr<CudnnPlan> get(const PlanProblem& problem, int64_t choice);
  // Where the plan is, or would be, on disk.
  std::string path(const PlanProblem& problem, int64_t choice) const;

 private:
  struct Outcome {
    std::shared_ptr<CudnnPlan> plan;
    std::string refusal;
  };

  std::string key(const PlanProblem& problem, int64_t choice) const;
  Outcome make(const PlanProblem& problem, int64_t choice, const std::string& key) const;
  std::shared_ptr<CudnnPlan> load(const PlanProblem& problem, const std::string& key) const;
  // For who records what kernels are made of.
  void note(const CudnnPlan& plan, const std::string& key) const;

  PlanMaker maker_;
  CacheFiles files_;
  MadeOnce<std::string, Outcome> outcomes_;
};

// cuDNN, for a GPU that is there.
PlanMaker cudnn_maker(Context& context);

// The GPU's plan for a problem; null where the card is only planned for, and cuDNN cannot be asked. Refuses
// with cuDNN's reason.
std::shared_ptr<CudnnPlan> plan_of(Context& context, const PlanProblem& problem, int64_t choice);

}  // namespace tessera::cuda
