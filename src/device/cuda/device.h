// One GPU as a device: its memory, its queues, and kernels from the registry of this folder.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "tessera/compile/device.h"
#include "tessera/compile/device_collectives.h"
#include "tessera/compile/kernel_artifacts.h"
#include "tessera/compile/threaded_kernels.h"
#include "tessera/device/common/jpeg_decoding.h"

#include "device/cuda/communication/nccl_groups.h"
#include "device/cuda/runtime/context.h"

namespace tessera::cuda {

class CudaDevice : public Device,
                   public ThreadedKernels,
                   public DeviceCollectives,
                   public ArtifactKeeper,
                   public JpegDecoding {
 public:
  // "" or a number: a GPU of this machine; "rank=3": that of the machine's fourth rank, where ranks share
  // GPUs if there are too few; "plan-h100": a card that is planned for and not there.
  explicit CudaDevice(const std::string& options);

  DeviceDescription description() const override;
  bool executes() const override { return context_->present(); }
  bool host_accessible() const override { return false; }
  bool plans_kernels() const override { return true; }
  PassTarget pass_target(const PassOptions& options) const override;
  Precision training_precision() const override;
  std::vector<KernelCandidate> candidates(const Node& node) const override;
  bool tunable(const Node& node) const override;
  // Each that asks cuDNN needs a handle, which takes memory.
  unsigned planning_threads() const override { return 8; }
  void wait_for_kernels() override;
  std::function<void()> settings_of_thread() const override;

  KernelArtifacts collect(const std::function<void()>& work) override;
  std::shared_ptr<void> offer(KernelArtifacts artifacts) override;

  void connect(const std::shared_ptr<Communicator>& group, int64_t most_blocks) override;
  std::string refusal(const Node& node, const Communicator* group) const override;
  KernelCandidate collective_candidate() const override;
  std::string collective_library() const override;

  JpegsUnderWay decode_jpegs(std::span<const JpegPart> parts, int64_t height, int64_t width,
                             std::shared_ptr<const void> files) override;
  JpegDecodingTimes decoding_times() const override;

  std::shared_ptr<void> allocate(int64_t bytes) override;
  // As much as cudaMalloc gives, which NVIDIA's libraries are used to: with 64 bytes cuDNN's gradient of a
  // layer norm in fp32 ends with CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER where rows are multiples of 32
  // elements.
  int64_t memory_alignment() const override { return 256; }
  std::optional<int64_t> free_bytes() const override;
  std::optional<int64_t> peak_bytes() const override;
  std::shared_ptr<void> allocate_pinned(int64_t bytes) override;
  void copy_from_host(void* device, const void* host, int64_t bytes) override;
  void copy_to_host(void* host, const void* device, int64_t bytes) override;
  std::shared_ptr<Queue> queue() override;

  // What its kernels are made in.
  Context& context() const { return *context_; }

 private:
  std::shared_ptr<Context> context_;
  NcclGroups& groups_;  // of the context
};

}  // namespace tessera::cuda
