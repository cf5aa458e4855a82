// Ranks of any machines, by messages of MPI.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "tessera/compile/communicator.h"
#include "tessera/distribute/call.h"

#include "mpi/exchange.h"

namespace tessera::mpi {

class MpiCommunicator : public Communicator {
 public:
  // The group of all.
  explicit MpiCommunicator(const std::shared_ptr<World>& world);

  int64_t rank() const override { return rank_; }
  int64_t size() const override { return std::ssize(exchange_.members()); }
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
  // What the pieces of messages lie in.
  struct Memory {
    std::vector<distribute::Call> calls;  // of all members
    std::vector<std::byte> chunk;         // a share for each member, one after the other
    std::vector<std::byte> shares;        // this member's share of all chunks
  };

  // How the members share a chunk.
  struct Shares {
    int64_t elements = 0;
    int64_t width = 1;  // bytes of an element
    int64_t members = 1;
    int64_t begin(int64_t member) const { return elements * member / members * width; }  // in bytes
    int64_t bytes(int64_t member) const { return begin(member + 1) - begin(member); }
  };

  MpiCommunicator(const std::shared_ptr<World>& world, std::vector<int64_t> members, int64_t rank,
                  int64_t tag);

  // Waits until all members have come here with the same call.
  void meet(distribute::Call call);
  Shares share(int64_t elements, DataType type) const;
  std::byte* place(const Shares& shares, int64_t member) const {
    return memory_->chunk.data() + shares.begin(member);
  }
  // Reduces this member's share of all members' chunks.
  void reduce_share(const Shares& shares, std::byte* target, DataType type, Reduction reduction);
  // Gives all other members, but one that has the whole chunk, this member's share of it, and takes theirs.
  void gather_shares(const Shares& shares, int64_t has_all = -1);

  Exchange exchange_;
  int64_t rank_;
  uint32_t calls_ = 0;
  std::shared_ptr<Memory> memory_ = std::make_shared<Memory>();
};

}  // namespace tessera::mpi
