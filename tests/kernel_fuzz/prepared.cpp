#include "kernel_fuzz/prepared.h"

#include <algorithm>
#include <functional>
#include <thread>

#include "tessera/base/error.h"

#include "kernel_fuzz/seeds.h"

namespace tessera::testing {
namespace {

bool holds_weight_gradient(const Node& node) {
  return node.operator_name() == "convolution_weight_gradient" ||
         (node.body() != nullptr &&
          std::any_of(node.body()->nodes().begin(), node.body()->nodes().end(),
                      [](const auto& inner) { return holds_weight_gradient(*inner); }));
}

}  // namespace

bool is_tried(const KernelProblem& problem, const KernelCandidate& candidate) {
  const size_t number = candidate.name.find('#');
  if (number == std::string::npos) return true;
  const bool short_type = is_half(problem.node->output()->data_type());
  if (short_type && holds_weight_gradient(*problem.node)) return false;
  constexpr size_t kOthers = 7;
  const size_t one = 1 + std::hash<std::string>()(problem.description()) % kOthers;
  return candidate.name.substr(number + 1) == std::to_string(one);
}

PreparedSeeds::PreparedSeeds(std::shared_ptr<Device> device, const EagerDevice& eager)
    : device_(std::move(device)), eager_(eager) {}

std::shared_ptr<PreparedSeed> PreparedSeeds::prepare(uint64_t seed) const {
  auto result = std::make_shared<PreparedSeed>();
  result->problems = draw_cuda_problems(seed, eager_);
  for (const KernelProblem& problem : result->problems) {
    const KernelRequest request = problem.request();
    try {
      for (const KernelCandidate& candidate : device_->candidates(*problem.node)) {
        if (is_tried(problem, candidate) && candidate.refusal(request).empty())
          result->kernels.push_back(candidate.create(request));
      }
    } catch (const Error&) {
      // It is thrown again where the kernel shall run, and reported there.
    }
  }
  for (const KernelProblem& problem : result->problems) result->expected.push_back(expected_outputs(problem));
  return result;
}

std::shared_ptr<PreparedSeed> PreparedSeeds::get(uint64_t seed) {
  const uint64_t ahead = std::max(std::thread::hardware_concurrency(), 1U);
  const uint64_t last = std::min(seed + ahead, last_seed().value_or(UINT64_MAX));
  for (uint64_t next = std::max(begun_ + 1, seed); next <= last; ++next) {
    std::packaged_task<std::shared_ptr<PreparedSeed>()> task([this, next] { return prepare(next); });
    waiting_[next] = task.get_future();
    work_.add(std::packaged_task<void()>(std::move(task)));
    begun_ = next;
  }
  std::future<std::shared_ptr<PreparedSeed>> own = std::move(waiting_.at(seed));
  waiting_.erase(seed);
  return own.get();
}

}  // namespace tessera::testing
