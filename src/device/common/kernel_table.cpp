#include "tessera/device/common/kernel_table.h"

#include <algorithm>

#include "tessera/base/text.h"
#include "tessera/device/common/refusal.h"
#include "tessera/graph/operator.h"
#include "tessera/passes/fuse.h"

namespace tessera::backend {
namespace {

class Nothing : public Kernel {
 public:
  void run(const KernelArguments&) override {}
};

}  // namespace

std::string kernel_key(const Node& node) {
  return node.body() == nullptr ? node.operator_name() : "fused:" + node.attributes().text("kind");
}

void check_kernel_keys(const std::vector<std::string>& keys, const std::vector<FusionPattern>& patterns) {
  std::vector<std::string> known;
  for (const char* kind : {kClusterKind, kClustersKind, kProductClusterKind})
    known.push_back(std::string("fused:") + kind);
  for (const FusionPattern& pattern : patterns) known.push_back("fused:" + pattern.kind);
  for (const OperatorSchema* schema : OperatorRegistry::instance().all()) {
    known.push_back(schema->name);
    // As fuse_input_casts makes them.
    if (schema->operator_class == OperatorClass::contraction) known.push_back("fused:" + schema->name);
  }
  for (const std::string& key : keys) {
    if (std::ranges::find(known, key) != known.end()) continue;
    fail(ErrorCode::internal, "kernels are registered for '{}', which no node is{}", key,
         did_you_mean(key, known));
  }
}

KernelCandidate checked_candidate(const std::string& name,
                                  std::function<KernelMaker(const KernelRequest& request)> plan) {
  using Planned = std::variant<Refusal, KernelMaker>;
  KernelCandidate candidate;
  candidate.name = name;
  candidate.plan = [plan = std::move(plan)](const KernelRequest& request) -> Planned {
    try {
      return plan(request);
    } catch (const Refused& refused) {
      return Refusal{refused.what()};
    }
  };
  return candidate;
}

KernelCandidate willing_candidate(
    const std::string& name, std::function<std::unique_ptr<Kernel>(const KernelRequest& request)> create) {
  KernelCandidate candidate;
  candidate.name = name;
  candidate.plan = [create = std::move(create)](const KernelRequest& request) {
    return KernelMaker([create, &request] { return create(request); });
  };
  return candidate;
}

KernelCandidate fallback_candidate(
    const std::string& name, std::function<std::unique_ptr<Kernel>(const KernelRequest& request)> create) {
  KernelCandidate candidate = willing_candidate(name, std::move(create));
  candidate.fallback = true;
  return candidate;
}

bool makes_nothing(const Node& node) {
  const auto& outputs = node.outputs();
  return std::all_of(outputs.begin(), outputs.end(),
                     [](const auto& output) { return output->type().element_count() == 0; });
}

KernelCandidate nothing_candidate() {
  return fallback_candidate("nothing", [](const KernelRequest&) { return std::make_unique<Nothing>(); });
}

}  // namespace tessera::backend
