#include "device/cuda/communication/nccl_groups.h"

#include "tessera/base/log.h"

#include "device/cuda/communication/nccl_group.h"
#include "device/cuda/communication/nccl_kernel.h"

namespace tessera::cuda {

NcclGroups::NcclGroups(const Context& context) : context_(context) {}
NcclGroups::~NcclGroups() = default;

void NcclGroups::connect(const std::shared_ptr<Communicator>& members, int64_t most_blocks) {
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(known_, [](const auto& entry) { return entry.second.members.expired(); });
    if (known_.contains(members.get())) return;
  }
  // Ranks that share the GPU connect at the same time.
  NcclConnection connection = connect_gpus(context_, members, most_blocks);
  if (!connection.refusal.empty() && members->rank() == 0)
    log_warning("{} ranks exchange tensors through the host: {}", members->size(), connection.refusal);
  const std::lock_guard lock(mutex_);
  known_[members.get()] = {members, std::move(connection.group), std::move(connection.refusal)};
}

const NcclGroups::Known* NcclGroups::find_known(const Communicator* members) const {
  const auto found = known_.find(members);
  return found == known_.end() || found->second.members.expired() ? nullptr : &found->second;
}

std::string NcclGroups::refusal(const Node& node, const Communicator* members) const {
  if (members != nullptr || context_.present()) {
    const std::lock_guard lock(mutex_);
    const Known* known = find_known(members);
    if (known == nullptr) return "the GPUs of its group are not connected";
    if (known->group == nullptr) return known->refusal;
  }
  return nccl_refusal(node);
}

std::shared_ptr<NcclGroup> NcclGroups::find(const Communicator* members) const {
  const std::lock_guard lock(mutex_);
  const Known* known = find_known(members);
  return known == nullptr ? nullptr : known->group;
}

}  // namespace tessera::cuda
