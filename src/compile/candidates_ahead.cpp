#include "compile/candidates_ahead.h"

#include <exception>
#include <memory>
#include <utility>

namespace tessera {
namespace {

// What came of a maker that was called ahead.
struct MadeKernel {
  std::unique_ptr<Kernel> kernel;
  std::exception_ptr failure;
};

}  // namespace

CandidatesAhead::CandidatesAhead(Device& device, const std::vector<KernelQuestion>& questions)
    : device_(device), questions_(questions), threaded_(device.extension<ThreadedKernels>()) {
  if (threaded_ == nullptr) return;
  adopt_settings_ = device.settings_of_thread();
  first_runs_.emplace(device);
  for (const KernelQuestion& question : questions) {
    if (question.tuner != nullptr) first_runs_->expect(question.request);
  }
  work_.emplace(threaded_->planning_threads());
  for (const KernelQuestion& question : questions) {
    std::packaged_task<PlannedNode()> task([this, &question] {
      adopt_settings_();
      return plan(question);
    });
    planned_.push_back(task.get_future());
    work_->add(std::packaged_task<void()>(std::move(task)));
  }
}

CandidatesAhead::~CandidatesAhead() {
  stopped_ = true;
}

PlannedNode CandidatesAhead::take(size_t question) {
  if (threaded_ != nullptr) return planned_.at(question).get();
  const KernelQuestion& asked = questions_.at(question);
  return plan_candidates(asked.request, device_, asked.tuner != nullptr, asked.kernel);
}

void CandidatesAhead::wait_for_kernels() {
  if (threaded_ == nullptr) return;
  work_->wait();
  first_runs_.reset();
  threaded_->wait_for_kernels();
}

PlannedNode CandidatesAhead::plan(const KernelQuestion& question) {
  PlannedNode planned =
      plan_candidates(question.request, device_, question.tuner != nullptr, question.kernel);
  if (will_be_timed(question, planned)) {
    for (WillingCandidate& candidate : planned.willing) make(candidate, question.request);
  }
  return planned;
}

bool CandidatesAhead::will_be_timed(const KernelQuestion& question, const PlannedNode& planned) {
  if (question.tuner == nullptr || !question.tuner->measures(question.request, planned.willing)) return false;
  const std::lock_guard lock(mutex_);
  return begun_.insert(Tuner::key_of(question.request)).second;
}

// From now on the candidate's maker gives the kernel that was made, and makes another where that is gone.
void CandidatesAhead::make(WillingCandidate& candidate, const KernelRequest& request) {
  const auto made = std::make_shared<MadeKernel>();
  work_->add(std::packaged_task<void()>([this, made, make = candidate.make, &request] {
    if (stopped_) return;
    try {
      adopt_settings_();
      made->kernel = make();
      first_runs_->run(*made->kernel, request);
    } catch (...) {
      made->failure = std::current_exception();
    }
  }));
  candidate.make = [made, make = std::move(candidate.make)]() -> std::unique_ptr<Kernel> {
    if (made->failure != nullptr) std::rethrow_exception(std::exchange(made->failure, nullptr));
    if (made->kernel != nullptr) return std::move(made->kernel);
    return make();
  };
}

}  // namespace tessera
