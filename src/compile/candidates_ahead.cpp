#include "compile/candidates_ahead.h"

#include <memory>
#include <set>
#include <string>
#include <utility>

#include "tessera/graph/operator.h"

namespace tessera {
namespace {

// Which questions ask for work that an earlier one asks for already. A key is a text of the node, which takes
// too long to be made for each node of a large graph where nothing is tuned.
std::vector<bool> find_repeated(const std::vector<KernelQuestion>& questions, bool tunes) {
  if (!tunes) return std::vector<bool>(questions.size(), false);
  std::set<std::pair<std::string, bool>> seen;
  std::vector<bool> repeated;
  for (const KernelQuestion& question : questions)
    repeated.push_back(!seen.insert({Tuner::key_of(question.request), question.tuner != nullptr}).second);
  return repeated;
}

}  // namespace

CandidatesAhead::CandidatesAhead(Device& device, const std::vector<KernelQuestion>& questions)
    : device_(device), questions_(questions), threaded_(device.extension<ThreadedKernels>()) {
  if (threaded_ == nullptr) return;
  adopt_settings_ = device.settings_of_thread();
  first_runs_.emplace(device);
  for (const KernelQuestion& question : questions) {
    if (question.tuner == nullptr) continue;
    tunes_ = true;
    first_runs_->expect(question.request);
  }
  work_.emplace(threaded_->planning_threads());
  planned_.resize(questions.size());
  const std::vector<bool> repeated = find_repeated(questions, tunes_);
  // What equal work needs is known once it is planned; until then a thread would wait for another.
  for (const bool are_repeated : {false, true}) {
    for (size_t place = 0; place < questions.size(); ++place) {
      if (repeated[place] != are_repeated) continue;
      std::packaged_task<PlannedNode()> task([this, &question = questions[place], are_repeated] {
        adopt_settings_();
        return plan(question, are_repeated);
      });
      planned_[place] = task.get_future();
      work_->add(std::packaged_task<void()>(std::move(task)));
    }
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

PlannedNode CandidatesAhead::plan(const KernelQuestion& question, bool is_repeated) {
  PlannedNode planned =
      plan_candidates(question.request, device_, question.tuner != nullptr, question.kernel);
  const bool measured =
      question.tuner != nullptr && question.tuner->measures(question.request, planned.willing);
  if (measured && !is_repeated) {
    for (WillingCandidate& candidate : planned.willing) {
      make(candidate, [this, &request = question.request](Kernel& made) { first_runs_->run(made, request); });
    }
  } else if (will_be_taken(question, planned)) {
    make(planned.willing.front(), [](Kernel&) {});
  }
  return planned;
}

// What compiles such a kernel would else be waited for when the next one is timed.
bool CandidatesAhead::will_be_taken(const KernelQuestion& question, const PlannedNode& planned) const {
  const bool has_choice = question.tuner != nullptr && planned.willing.size() > 1;
  if (!tunes_ || has_choice || planned.willing.empty()) return false;
  const bool communicates = question.request.node.schema().operator_class == OperatorClass::communication;
  const bool expands = question.expands && planned.willing.front().candidate->graph;
  return !communicates && !expands && (device_.executes() || device_.plans_kernels());
}

// From now on the candidate's maker waits for the kernel that is made here, and makes another where that is
// gone.
void CandidatesAhead::make(WillingCandidate& candidate, std::function<void(Kernel&)> when_made) {
  std::packaged_task<std::unique_ptr<Kernel>()> task(
      [this, make = candidate.make, when_made = std::move(when_made)]() -> std::unique_ptr<Kernel> {
        if (stopped_) return nullptr;
        adopt_settings_();
        std::unique_ptr<Kernel> kernel = make();
        when_made(*kernel);
        return kernel;
      });
  const auto made = std::make_shared<std::future<std::unique_ptr<Kernel>>>(task.get_future());
  work_->add(std::packaged_task<void()>(std::move(task)));
  candidate.make = [made, make = std::move(candidate.make)] { return made->valid() ? made->get() : make(); };
}

}  // namespace tessera
