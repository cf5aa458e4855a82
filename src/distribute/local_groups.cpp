// How local groups come about: in memory of one process, or in a file that several map.
#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tessera/base/error.h"
#include "tessera/distribute/exchange.h"
#include "tessera/distribute/registry.h"

#include "distribute/local.h"

namespace tessera::distribute {
namespace {

constexpr uint64_t kLayout = 0x7465'7373'6c6f'6300 + sizeof(GroupHeader) + kSlotBytes;

// Closes itself.
class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int number() const { return number_; }

 private:
  int number_;
};

void check_ranks(int64_t rank, int64_t ranks) {
  require(ranks > 0 && ranks <= kMostRanks && rank >= 0 && rank < ranks, ErrorCode::invalid_argument,
          "rank {} of {} ranks: there may be up to {}, counted from 0", rank, ranks, kMostRanks);
}

Descriptor new_memory_file(int64_t bytes) {
  const int number = ::memfd_create("tessera-ranks", MFD_CLOEXEC);
  require(number >= 0 && ::ftruncate(number, bytes) == 0, ErrorCode::io,
          "memory for {} bytes that ranks share: {}", bytes, std::strerror(errno));
  return Descriptor(number);
}

// Where another process may open what this one has open.
std::string path_of(int process, int descriptor) {
  return fmt::format("/proc/{}/fd/{}", process, descriptor);
}

std::shared_ptr<void> open_shared(const std::string& path, int64_t bytes) {
  const Descriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  require(file.number() >= 0, ErrorCode::io, "{}: {}", path, std::strerror(errno));
  return map_shared(file.number(), bytes, path);
}

// The first rank says what the group is like; the others compare.
void agree(GroupHeader& header, int64_t ranks, const std::string& name) {
  uint64_t layout = 0;
  const bool is_first = header.layout.compare_exchange_strong(layout, kLayout);
  require(is_first || layout == kLayout, ErrorCode::invalid_argument,
          "{}: its ranks are of another build of tessera, or it is no group's", name);
  int64_t known = 0;
  const bool says = header.ranks.compare_exchange_strong(known, ranks);
  require(says || known == ranks, ErrorCode::invalid_argument, "{}: is a group of {} ranks, not of {}", name,
          known, ranks);
}

const CommunicatorRegistration kRegistration(
    {.name = kLocal,
     .documentation = "processes of one machine, over memory that they share",
     .connect = [](const Rendezvous& place) {
       require(!place.address.empty(), ErrorCode::invalid_argument,
               "the environment says {} ranks, and not where they meet: {} is missing", place.ranks,
               kAddressVariable);
       return process_group(place.address, place.rank, place.ranks, place.heartbeat_seconds);
     }});

}  // namespace

std::shared_ptr<void> map_shared(int descriptor, int64_t bytes, const std::string& name) {
  struct stat status {};
  require(::fstat(descriptor, &status) == 0, ErrorCode::io, "{}: {}", name, std::strerror(errno));
  require(status.st_size >= bytes || ::ftruncate(descriptor, bytes) == 0, ErrorCode::io,
          "{}: cannot be made {} bytes large: {}", name, bytes, std::strerror(errno));
  void* memory =
      ::mmap(nullptr, static_cast<size_t>(bytes), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  require(memory != MAP_FAILED, ErrorCode::io, "{}: cannot be mapped: {}", name, std::strerror(errno));
  return {memory, [bytes](void* mapped) { ::munmap(mapped, static_cast<size_t>(bytes)); }};
}

std::vector<std::shared_ptr<Communicator>> thread_group(int64_t ranks) {
  check_ranks(0, ranks);
  const int64_t bytes = GroupMemory::bytes(ranks);
  const GroupMemory memory(map_shared(new_memory_file(bytes).number(), bytes, "ranks in threads"), ranks);
  std::vector<std::shared_ptr<Communicator>> group;
  for (int64_t rank = 0; rank < ranks; ++rank)
    group.push_back(std::make_shared<LocalCommunicator>(std::make_shared<RankWatch>(memory, rank, 0)));
  return group;
}

std::shared_ptr<Communicator> process_group(const std::string& path, int64_t rank, int64_t ranks,
                                            double seconds) {
  check_ranks(rank, ranks);
  require(seconds > 0, ErrorCode::invalid_argument, "ranks cannot give a sign of life every {} s", seconds);
  const GroupMemory memory(open_shared(path, GroupMemory::bytes(ranks)), ranks);
  agree(memory.header(), ranks, path);
  return std::make_shared<LocalCommunicator>(std::make_shared<RankWatch>(memory, rank, seconds));
}

// The first member makes the memory, and all hear where it is.
std::shared_ptr<Communicator> LocalCommunicator::group(std::span<const int64_t> members) {
  check_members(members, size());
  const auto own = std::find(members.begin(), members.end(), rank_);
  const auto count = std::ssize(members);
  const int64_t bytes = GroupMemory::bytes(count);
  const bool is_first = own == members.begin();
  const Descriptor file = is_first ? new_memory_file(bytes) : Descriptor(-1);
  const int64_t place[2] = {::getpid(), file.number()};
  std::vector<int64_t> places(static_cast<size_t>(2 * size()));
  all_gather(place, places.data(), sizeof(place));
  std::shared_ptr<Communicator> group;
  if (own != members.end()) {
    const auto first = static_cast<size_t>(2 * members.front());
    const std::string path = path_of(static_cast<int>(places[first]), static_cast<int>(places[first + 1]));
    std::vector<int64_t> numbers;
    for (const int64_t member : members) numbers.push_back(members_[static_cast<size_t>(member)]);
    group.reset(new LocalCommunicator(watch_, GroupMemory(open_shared(path, bytes), count),
                                      own - members.begin(), std::move(numbers)));
  }
  barrier();  // until all have mapped it the file stays open
  return group;
}

}  // namespace tessera::distribute
