#include "device/cpu/unfused.h"

#include <unordered_map>

#include "tessera/base/error.h"

#include "device/cpu/kernel_registry.h"

namespace tessera::cpu {
namespace {

using Candidates = std::function<std::vector<KernelCandidate>(const Node& node)>;

constexpr int64_t kAlignment = 64;

std::unique_ptr<Kernel> first_willing(const KernelRequest& request, const Candidates& candidates) {
  for (const KernelCandidate& candidate : candidates(request.node)) {
    if (candidate.refusal(request).empty()) return candidate.create(request);
  }
  fail(ErrorCode::unsupported, "no kernel takes '{}' of the body", request.node.name());
}

class Unfused : public Kernel {
 public:
  Unfused(const KernelRequest& request, const Candidates& candidates) {
    const Graph& body = *request.node.body();
    for (const auto& input : body.inputs()) places_[input.get()] = {Place::Kind::input, input->index()};
    for (size_t i = 0; i < body.outputs().size(); ++i) {
      places_.try_emplace(body.outputs()[i].value, Place{Place::Kind::output, i});
    }
    for (const auto& node : body.nodes()) add_step(*node, request, candidates);
    inner_workspace_ = workspace_bytes_;
    workspace_bytes_ += inner_bytes_;
  }

  int64_t workspace_bytes() const override { return workspace_bytes_; }

  void prepare(size_t input, const void* memory) override {
    for (Step& step : steps_) {
      for (size_t i = 0; i < step.inputs.size(); ++i) {
        const Place& place = step.inputs[i];
        if (place.kind == Place::Kind::input && place.index == input) step.kernel->prepare(i, memory);
      }
    }
  }

  void run(const KernelArguments& arguments) override {
    auto* workspace = static_cast<std::byte*>(arguments.workspace);
    const auto address = [&](const Place& place) -> void* {
      if (place.kind == Place::Kind::input) return const_cast<void*>(arguments.inputs[place.index]);
      if (place.kind == Place::Kind::output) return arguments.outputs[place.index];
      return workspace + place.index;
    };
    std::vector<const void*> inputs;
    std::vector<void*> outputs;
    for (Step& step : steps_) {
      inputs.clear();
      outputs.clear();
      for (const Place& place : step.inputs) inputs.push_back(address(place));
      for (const Place& place : step.outputs) outputs.push_back(address(place));
      step.kernel->run({inputs, outputs, workspace + inner_workspace_});
    }
  }

 private:
  struct Place {
    enum class Kind { input, output, workspace } kind = Kind::workspace;
    size_t index = 0;  // or the offset in the workspace
  };
  struct Step {
    std::unique_ptr<Kernel> kernel;
    std::vector<Place> inputs;
    std::vector<Place> outputs;
  };

  void add_step(const Node& node, const KernelRequest& request, const Candidates& candidates) {
    Step step;
    KernelRequest inner{node, {}, request.deterministic};
    for (const Value* input : node.inputs()) {
      const Place& place = places_.at(input);
      step.inputs.push_back(place);
      inner.frozen_inputs.push_back(place.kind == Place::Kind::input &&
                                    place.index < request.frozen_inputs.size() &&
                                    request.frozen_inputs[place.index]);
    }
    for (const auto& output : node.outputs()) {
      const auto [place, added] = places_.try_emplace(output.get());
      if (added) place->second.index = static_cast<size_t>(book(output->type().bytes()));
      step.outputs.push_back(place->second);
    }
    step.kernel = first_willing(inner, candidates);
    inner_bytes_ = std::max(inner_bytes_, step.kernel->workspace_bytes());
    steps_.push_back(std::move(step));
  }

  int64_t book(int64_t bytes) {
    const int64_t offset = workspace_bytes_;
    workspace_bytes_ += (bytes + kAlignment - 1) / kAlignment * kAlignment;
    return offset;
  }

  std::unordered_map<const Value*, Place> places_;
  std::vector<Step> steps_;
  int64_t workspace_bytes_ = 0;
  int64_t inner_workspace_ = 0;
  int64_t inner_bytes_ = 0;
};

}  // namespace

KernelCandidate unfused_candidate(const Candidates& candidates) {
  const auto check = [](const KernelRequest& request) {
    require(request.node.body() != nullptr, ErrorCode::unsupported, "the node is not fused");
  };
  const auto create = [candidates](const KernelRequest& request) -> std::unique_ptr<Kernel> {
    return std::make_unique<Unfused>(request, candidates);
  };
  return checked_candidate("unfused", check, create);
}

}  // namespace tessera::cpu
