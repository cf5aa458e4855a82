// The ranks of a group on their GPUs, as NCCL connects them.
#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "tessera/compile/communicator.h"

#include "device/cuda/communication/nccl_library.h"
#include "device/cuda/runtime/context.h"

namespace tessera::cuda {

// While it lives a thread looks after the other ranks: when one has failed, or NCCL has, what the GPU is in
// the middle of ends.
class NcclGroup {
 public:
  NcclGroup(ncclComm_t handle, const Context& context, const std::shared_ptr<Communicator>& members);
  // Recordings that hold its collectives must be gone.
  ~NcclGroup();
  NcclGroup(const NcclGroup&) = delete;
  NcclGroup& operator=(const NcclGroup&) = delete;

  int64_t rank() const { return rank_; }
  // Throws Error(rank_failure) where the group has given up.
  ncclComm_t handle() const;
  // Of what NCCL was asked for with the handle. Throws Error(rank_failure) where it failed since the group
  // has given up, Error(device_fault) where it failed by itself.
  void check(ncclResult_t status, const std::string& what) const;

 private:
  void watch();
  bool has_failed();

  ncclComm_t handle_;
  const Context& context_;
  const std::weak_ptr<Communicator> members_;
  const int64_t rank_;
  std::atomic<bool> given_up_{false};
  std::mutex mutex_;
  std::condition_variable wake_;
  bool ends_ = false;
  std::thread thread_;
};

// What came of connecting: a group, or why there is none.
struct NcclConnection {
  std::shared_ptr<NcclGroup> group;
  std::string refusal;
};

// All members call it. All get a group, or all the same refusal. Throws Error(rank_failure).
NcclConnection connect_gpus(const Context& context, const std::shared_ptr<Communicator>& members,
                            int64_t most_blocks);

}  // namespace tessera::cuda
