#include "device/cuda/cudnn/plan_cache.h"

#include <optional>

#include "tessera/device/common/refusal.h"

#include "device/cuda/codegen/artifacts.h"

namespace tessera::cuda {
namespace {

// To be raised when PlanProblem::key comes to mean another graph, or the bytes of saved_plan.h other plans.
constexpr int kFormat = 1;

}  // namespace

PlanCache::PlanCache(Context& context)
    : PlanCache(cudnn_maker(context), CacheFiles::standard("cudnn-plan")) {}

std::shared_ptr<CudnnPlan> PlanCache::get(const PlanProblem& problem, int64_t choice) {
  // Lack of memory and a fault of the GPU say nothing of the problem: the next one tries again.
  const std::string key = this->key(problem, choice);
  const Outcome made = outcomes_.get(key, [&] { return make(problem, choice, key); });
  if (made.plan == nullptr) backend::refuse("{}", made.refusal);
  if (ArtifactRecording::is_active()) note(*made.plan, key);
  return made.plan;
}

void PlanCache::note(const CudnnPlan& plan, const std::string& key) const {
  const SavedPlan saved = plan.saved();
  if (saved.text.empty()) return;
  const auto [name, contents] = files_.file(key, to_bytes(saved));
  ArtifactRecording::note_file(name, contents);
}

std::string PlanCache::path(const PlanProblem& problem, int64_t choice) const {
  return files_.path(key(problem, choice));
}

std::string PlanCache::key(const PlanProblem& problem, int64_t choice) const {
  return fmt::format("plan {}; {}; choice {}; {}", kFormat, maker_.versions, choice, problem.key);
}

PlanCache::Outcome PlanCache::make(const PlanProblem& problem, int64_t choice, const std::string& key) const {
  Outcome outcome;
  outcome.plan = load(problem, key);
  if (outcome.plan != nullptr) return outcome;
  try {
    outcome.plan = maker_.build(problem, choice);
    const SavedPlan saved = outcome.plan->saved();
    if (!saved.text.empty()) files_.write(key, to_bytes(saved));
  } catch (const backend::Refused& refused) {
    outcome.refusal = refused.what();
  }
  return outcome;
}

// Null where nothing of use is on disk; what cuDNN does not take is built anew.
std::shared_ptr<CudnnPlan> PlanCache::load(const PlanProblem& problem, const std::string& key) const {
  const std::optional<SavedPlan> saved = parse_saved_plan(files_.read(key));
  if (!saved.has_value()) return nullptr;
  return backend::unless_refused([&] { return maker_.load(problem, *saved); }).value_or(nullptr);
}

PlanMaker cudnn_maker(Context& context) {
  const GpuTraits& gpu = context.traits();
  int driver_version = 0;
  driver().cuDriverGetVersion_(&driver_version);
  int major = 0;
  int minor = 0;
  nvrtc().nvrtcVersion_(&major, &minor);
  return {.versions = fmt::format("{}; sm_{}; {} multiprocessors; cudnn {}; cudnn-frontend {}; nvrtc {}.{}; "
                                  "driver {}",
                                  gpu.model, gpu.architecture, gpu.multiprocessors, cudnn_version(),
                                  cudnn_frontend_version(), major, minor, driver_version),
          .build = [&context](const PlanProblem& problem,
                              int64_t choice) { return build_cudnn_plan(context, problem, choice); },
          .load = [&context](const PlanProblem& problem,
                             const SavedPlan& saved) { return load_cudnn_plan(context, problem, saved); }};
}

std::shared_ptr<CudnnPlan> plan_of(Context& context, const PlanProblem& problem, int64_t choice) {
  return context.present() ? context.part<PlanCache>().get(problem, choice) : nullptr;
}

}  // namespace tessera::cuda
