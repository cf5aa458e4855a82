#include "mpi/mpi_communicator.h"

#include <algorithm>
#include <numeric>

#include "tessera/base/error.h"
#include "tessera/base/progress.h"
#include "tessera/distribute/part_cursor.h"
#include "tessera/distribute/reduction.h"

namespace tessera::mpi {
namespace {

using distribute::copy_bytes;

constexpr int64_t kChunkBytes = 1 << 22;

std::vector<int64_t> all_members(int64_t ranks) {
  std::vector<int64_t> members(static_cast<size_t>(ranks));
  std::iota(members.begin(), members.end(), 0);
  return members;
}

}  // namespace

MpiCommunicator::MpiCommunicator(const std::shared_ptr<World>& world)
    : MpiCommunicator(world, all_members(world->ranks()), world->rank(), world->free_tag()) {}

MpiCommunicator::MpiCommunicator(const std::shared_ptr<World>& world, std::vector<int64_t> members,
                                 int64_t rank, int64_t tag)
    : exchange_(world, std::move(members), tag), rank_(rank) {
  world->use_tag(tag);
}

void MpiCommunicator::meet(distribute::Call call) {
  note_progress();
  call.number = calls_++;
  std::vector<distribute::Call>& calls = memory_->calls;
  calls.resize(static_cast<size_t>(size()));
  calls[static_cast<size_t>(rank_)] = call;
  std::vector<Piece> sent;
  std::vector<Piece> received;
  for (int64_t member = 0; member < size(); ++member) {
    if (member == rank_) continue;
    sent.push_back({member, &calls[static_cast<size_t>(rank_)], sizeof(call)});
    received.push_back({member, &calls[static_cast<size_t>(member)], sizeof(call)});
  }
  exchange_.run(sent, received, memory_);
  for (int64_t member = 0; member < size(); ++member) {
    const std::string difference = distribute::difference(
        exchange_.members()[static_cast<size_t>(rank_)], call,
        exchange_.members()[static_cast<size_t>(member)], calls[static_cast<size_t>(member)]);
    if (!difference.empty()) exchange_.world()->stop(difference);
  }
}

MpiCommunicator::Shares MpiCommunicator::share(int64_t elements, DataType type) const {
  const auto width = static_cast<int64_t>(size_of(type));
  const auto bytes = static_cast<size_t>(elements * width);
  if (memory_->chunk.size() < bytes) memory_->chunk.resize(bytes);
  return {.elements = elements, .width = width, .members = size()};
}

void MpiCommunicator::reduce_share(const Shares& shares, std::byte* target, DataType type,
                                   Reduction reduction) {
  const int64_t own = shares.bytes(rank_);
  const auto all = static_cast<size_t>(own * size());
  if (memory_->shares.size() < all) memory_->shares.resize(all);
  std::vector<Piece> sent;
  std::vector<Piece> received;
  std::vector<const std::byte*> sources;
  for (int64_t member = 0; member < size(); ++member) {
    std::byte* source = memory_->shares.data() + member * own;
    sources.push_back(source);
    if (member == rank_) copy_bytes(source, place(shares, rank_), own);
    if (member == rank_) continue;
    if (shares.bytes(member) > 0) sent.push_back({member, place(shares, member), shares.bytes(member)});
    if (own > 0) received.push_back({member, source, own});
  }
  exchange_.run(sent, received, memory_);
  distribute::reduce_elements(sources, target, own / shares.width, type, reduction);
}

void MpiCommunicator::gather_shares(const Shares& shares, int64_t has_all) {
  std::vector<Piece> sent;
  std::vector<Piece> received;
  for (int64_t member = 0; member < size(); ++member) {
    if (member == rank_) continue;
    if (member != has_all && shares.bytes(rank_) > 0)
      sent.push_back({member, place(shares, rank_), shares.bytes(rank_)});
    if (rank_ != has_all && shares.bytes(member) > 0)
      received.push_back({member, place(shares, member), shares.bytes(member)});
  }
  exchange_.run(sent, received, memory_);
}

void MpiCommunicator::all_reduce(std::span<const ReducedPart> parts, DataType type, Reduction reduction) {
  const distribute::Call call = distribute::all_reduce_call(parts, type, reduction);
  meet(call);
  const auto width = static_cast<int64_t>(size_of(type));
  distribute::PartCursor from(parts, width);
  distribute::PartCursor to(parts, width);
  for (int64_t left = call.count; left > 0;) {
    const Shares shares = share(std::min(left, kChunkBytes / width), type);
    from.read(shares.elements, memory_->chunk.data());
    reduce_share(shares, place(shares, rank_), type, reduction);
    gather_shares(shares);
    to.write(shares.elements, memory_->chunk.data());
    left -= shares.elements;
  }
}

void MpiCommunicator::reduce_scatter(const void* input, void* output, int64_t elements, DataType type,
                                     Reduction reduction) {
  meet(distribute::reduce_scatter_call(elements, type, reduction));
  const auto width = static_cast<int64_t>(size_of(type));
  const int64_t most = std::max<int64_t>(1, kChunkBytes / width / size());  // of each part in a chunk
  for (int64_t done = 0; done < elements;) {
    const int64_t count = std::min(elements - done, most);
    const Shares shares = share(count * size(), type);
    for (int64_t part = 0; part < size(); ++part)
      copy_bytes(place(shares, part), static_cast<const std::byte*>(input) + (part * elements + done) * width,
                 count * width);
    reduce_share(shares, static_cast<std::byte*>(output) + done * width, type, reduction);
    done += count;
  }
}

void MpiCommunicator::all_gather(const void* input, void* output, int64_t bytes) {
  meet(distribute::all_gather_call(bytes));
  const int64_t most = std::max<int64_t>(1, kChunkBytes / size());
  for (int64_t done = 0; done < bytes;) {
    const int64_t count = std::min(bytes - done, most);
    const Shares shares = share(count * size(), DataType::uint8);
    copy_bytes(place(shares, rank_), static_cast<const std::byte*>(input) + done, count);
    gather_shares(shares);
    for (int64_t member = 0; member < size(); ++member)
      copy_bytes(static_cast<std::byte*>(output) + member * bytes + done, place(shares, member), count);
    done += count;
  }
}

// The root gives each member its share, and they give it each other: it sends everything once, however many
// they are.
void MpiCommunicator::broadcast(const void* input, void* output, int64_t bytes, int64_t root) {
  meet(distribute::broadcast_call(bytes, root, size()));
  for (int64_t done = 0; done < bytes;) {
    const Shares shares = share(std::min(bytes - done, kChunkBytes), DataType::uint8);
    std::vector<Piece> sent;
    std::vector<Piece> received;
    if (rank_ == root) {
      copy_bytes(memory_->chunk.data(), static_cast<const std::byte*>(input) + done, shares.elements);
      for (int64_t member = 0; member < size(); ++member) {
        if (member != root && shares.bytes(member) > 0)
          sent.push_back({member, place(shares, member), shares.bytes(member)});
      }
    } else if (shares.bytes(rank_) > 0) {
      received.push_back({root, place(shares, rank_), shares.bytes(rank_)});
    }
    exchange_.run(sent, received, memory_);
    gather_shares(shares, root);
    copy_bytes(static_cast<std::byte*>(output) + done, memory_->chunk.data(), shares.elements);
    done += shares.elements;
  }
}

void MpiCommunicator::barrier() {
  meet(distribute::barrier_call());
}

// All ranks of this group leave with one tag that none of them has used: disjoint groups may have the same.
std::shared_ptr<Communicator> MpiCommunicator::group(std::span<const int64_t> members) {
  distribute::check_members(members, size());
  World& world = *exchange_.world();
  int64_t tag = world.free_tag();
  const ReducedPart part{&tag, &tag, 1};
  all_reduce({&part, 1}, DataType::int64, Reduction::maximum);
  const auto own = std::find(members.begin(), members.end(), rank_);
  if (own == members.end()) {
    world.use_tag(tag);
    return nullptr;
  }
  std::vector<int64_t> ranks;
  for (const int64_t member : members) ranks.push_back(exchange_.members()[static_cast<size_t>(member)]);
  return std::shared_ptr<Communicator>(
      new MpiCommunicator(exchange_.world(), std::move(ranks), own - members.begin(), tag));
}

void MpiCommunicator::check() {
  World& world = *exchange_.world();
  if (world.is_aborted()) world.stop("");
  for (const int64_t member : exchange_.members()) {
    if (world.has_left(member)) continue;
    const std::string complaint = world.complaint(member);
    if (!complaint.empty() && !world.has_left(member)) world.stop(complaint);
  }
}

void MpiCommunicator::abort(const std::string& reason) noexcept {
  exchange_.world()->abort(reason);
}

}  // namespace tessera::mpi
