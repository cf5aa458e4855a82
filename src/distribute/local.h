// Ranks on one machine, over memory that they share.
#pragma once

#include <memory>
#include <vector>

#include "tessera/compile/communicator.h"

#include "distribute/rank_watch.h"
#include "distribute/shared_group.h"

namespace tessera::distribute {

class LocalCommunicator : public Communicator {
 public:
  // The group of all ranks of the watch.
  explicit LocalCommunicator(std::shared_ptr<RankWatch> watch);

  int64_t rank() const override { return rank_; }
  int64_t size() const override { return memory_.ranks; }
  void all_reduce(std::span<const ReducedPart> parts, DataType type, Reduction reduction) override;
  void reduce_scatter(const void* input, void* output, int64_t elements, DataType type,
                      Reduction reduction) override;
  void all_gather(const void* input, void* output, int64_t bytes) override;
  void broadcast(const void* input, void* output, int64_t bytes, int64_t root) override;
  void barrier() override;
  std::shared_ptr<Communicator> group(std::span<const int64_t> members) override;
  void check() override;
  void abort(const std::string& reason) noexcept override;

 private:
  LocalCommunicator(std::shared_ptr<RankWatch> watch, GroupMemory memory, int64_t rank,
                    std::vector<int64_t> members);

  void begin(const Call& call);
  size_t next_chunk() { return ++chunk_ % 2; }
  // Waits until all ranks have come here with the same call.
  void meet(size_t parity);
  void arrive_and_wait();
  void wait_for_generation(uint32_t generation);
  [[noreturn]] void stop(const std::string& reason);
  void check_alive();
  void check_calls(size_t parity);
  void reduce_chunk(size_t parity, int64_t elements, DataType type, Reduction reduction);

  std::shared_ptr<RankWatch> watch_;
  GroupMemory memory_;
  int64_t rank_;
  std::vector<int64_t> members_;  // by their numbers in the group of all ranks
  Call call_;
  uint32_t calls_ = 0;
  size_t chunk_ = 0;
  int spins_;
};

// The ranks of separate processes that map the same file, which is of zeros at first. `seconds` without a
// sign of life count as hanging. Throws Error(invalid_argument) where the file is another group's or build's,
// Error(io) naming it.
std::shared_ptr<Communicator> process_group(const std::string& path, int64_t rank, int64_t ranks,
                                            double seconds);

// Memory of a file of at least so many bytes, shared with all who map it. Throws Error(io).
std::shared_ptr<void> map_shared(int descriptor, int64_t bytes, const std::string& name);

}  // namespace tessera::distribute
