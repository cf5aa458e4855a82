#include "tessera/compile/kernel.h"

#include "tessera/base/error.h"

namespace tessera {

std::string KernelCandidate::refusal(const KernelRequest& request) const {
  const auto planned = plan(request);
  const auto* refused = std::get_if<Refusal>(&planned);
  return refused != nullptr ? refused->reason : "";
}

std::unique_ptr<Kernel> KernelCandidate::create(const KernelRequest& request) const {
  const auto planned = plan(request);
  if (const auto* refused = std::get_if<Refusal>(&planned))
    fail(ErrorCode::unsupported, "{} refuses '{}': {}", name, request.node.name(), refused->reason);
  return std::get<KernelMaker>(planned)();
}

}  // namespace tessera
