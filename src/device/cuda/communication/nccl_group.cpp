#include "device/cuda/communication/nccl_group.h"

#include <chrono>
#include <cstring>
#include <vector>

#include "tessera/base/error.h"
#include "tessera/base/log.h"

#include "device/cuda/communication/rank_card.h"

namespace tessera::cuda {
namespace {

constexpr auto kLook = std::chrono::milliseconds(50);

RankCard own_card(const Context& context) {
  RankCard card{.gpu = context.identity()};
  try {
    card.version = nccl_version();
  } catch (const Error& error) {
    card.explain(error.what());
  }
  return card;
}

// What every rank has done, or why not.
struct Outcome {
  std::array<char, 512> complaint{};  // "": done
};

std::string first_complaint(Communicator& members, const std::string& own) {
  Outcome outcome;
  std::memcpy(outcome.complaint.data(), own.data(), std::min(own.size(), outcome.complaint.size() - 1));
  std::vector<Outcome> all(static_cast<size_t>(members.size()));
  members.all_gather(&outcome, all.data(), sizeof(Outcome));
  for (size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank].complaint[0] != '\0')
      return fmt::format("rank {}: NCCL: {}", rank, all[rank].complaint.data());
  }
  return "";
}

ncclConfig_t configuration(int64_t most_blocks) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 1;  // a recording is made by the thread that begins it
  if (most_blocks > 0) {
    config.minCTAs = 1;
    config.maxCTAs = static_cast<int>(most_blocks);
  }
  return config;
}

}  // namespace

NcclConnection connect_gpus(const Context& context, const std::shared_ptr<Communicator>& members,
                            int64_t most_blocks) {
  const RankCard own = own_card(context);
  std::vector<RankCard> cards(static_cast<size_t>(members->size()));
  members->all_gather(&own, cards.data(), sizeof(RankCard));
  if (const std::string refusal = refusal_of(cards); !refusal.empty()) return {nullptr, refusal};

  context.enter();
  ncclUniqueId id{};
  std::string complaint;
  if (members->rank() == 0) complaint = complaint_of(nccl().ncclGetUniqueId_(&id), "opening a meeting point");
  members->broadcast(&id, &id, sizeof(id), 0);
  if (const std::string refusal = first_complaint(*members, complaint); !refusal.empty())
    return {nullptr, refusal};
  ncclComm_t handle = nullptr;
  ncclConfig_t config = configuration(most_blocks);
  complaint = complaint_of(nccl().ncclCommInitRankConfig_(&handle, static_cast<int>(members->size()), id,
                                                          static_cast<int>(members->rank()), &config),
                           "connecting the GPUs");
  const std::string refusal = first_complaint(*members, complaint);
  if (refusal.empty()) return {std::make_shared<NcclGroup>(handle, context, members), ""};
  if (handle != nullptr) nccl().ncclCommAbort_(handle);
  return {nullptr, refusal};
}

NcclGroup::NcclGroup(ncclComm_t handle, const Context& context, const std::shared_ptr<Communicator>& members)
    : handle_(handle), context_(context), members_(members), rank_(members->rank()) {
  thread_ = std::thread([this] { watch(); });
}

NcclGroup::~NcclGroup() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  wake_.notify_all();
  thread_.join();
  if (given_up_) return;  // the thread has ended it
  driver().cuCtxSetCurrent_(context_.handle());
  nccl().ncclCommDestroy_(handle_);
}

ncclComm_t NcclGroup::handle() const {
  if (given_up_) {
    if (const auto members = members_.lock()) members->check();
    fail(ErrorCode::rank_failure, "NCCL has given up its group");
  }
  return handle_;
}

void NcclGroup::check(ncclResult_t status, const std::string& what) const {
  if (status == ncclSuccess) return;
  static_cast<void>(handle());
  cuda::check(status, what);
}

void NcclGroup::watch() {
  driver().cuCtxSetCurrent_(context_.handle());
  std::unique_lock lock(mutex_);
  // Who has closed the communicator uses the group no more.
  while (!ends_ && !members_.expired()) {
    lock.unlock();
    if (has_failed()) {
      given_up_ = true;
      // Returns when recordings that hold its collectives are gone, too.
      nccl().ncclCommAbort_(handle_);
      return;
    }
    lock.lock();
    wake_.wait_for(lock, kLook, [this] { return ends_; });
  }
}

bool NcclGroup::has_failed() {
  const std::shared_ptr<Communicator> members = members_.lock();
  if (members == nullptr) return false;
  try {
    members->check();
  } catch (const Error& error) {
    log_warning("{}", error.what());
    return true;
  }
  ncclResult_t status = ncclSuccess;
  nccl().ncclCommGetAsyncError_(handle_, &status);
  if (status == ncclSuccess || status == ncclInProgress) return false;
  members->abort(fmt::format("rank {}: NCCL: {}", rank_, complaint_of(status, "a collective")));
  return true;
}

}  // namespace tessera::cuda
