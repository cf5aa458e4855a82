#include "tessera/distribute/call.h"

#include <algorithm>
#include <vector>

#include "tessera/base/error.h"

namespace tessera::distribute {
namespace {

enum Function : uint32_t { all_reduces, reduce_scatters, all_gathers, broadcasts, barriers };
constexpr const char* kFunctions[] = {"all_reduce", "reduce_scatter", "all_gather", "broadcast", "barrier"};

std::string describe(const Call& call) {
  const char* name = call.function < std::size(kFunctions) ? kFunctions[call.function] : "nothing known";
  if (call.function > reduce_scatters)
    return fmt::format("call {} is {} of {} bytes", call.number, name, call.count);
  return fmt::format("call {} is {} of {} {} ({})", call.number, name, call.count,
                     to_string(static_cast<DataType>(call.type)),
                     to_string(static_cast<Reduction>(call.detail)));
}

Call reducing(Function function, int64_t elements, DataType type, Reduction reduction) {
  require(reduces(type, reduction), ErrorCode::invalid_argument, "there is no {} of {} over ranks",
          to_string(reduction), to_string(type));
  return {.function = function,
          .type = static_cast<uint32_t>(type),
          .detail = static_cast<uint32_t>(reduction),
          .count = elements};
}

}  // namespace

Call all_reduce_call(std::span<const ReducedPart> parts, DataType type, Reduction reduction) {
  int64_t elements = 0;
  for (const ReducedPart& part : parts) elements += part.elements;
  return reducing(all_reduces, elements, type, reduction);
}

Call reduce_scatter_call(int64_t elements, DataType type, Reduction reduction) {
  return reducing(reduce_scatters, elements, type, reduction);
}

Call all_gather_call(int64_t bytes) {
  return {.function = all_gathers, .count = bytes};
}

Call broadcast_call(int64_t bytes, int64_t root, int64_t ranks) {
  require(root >= 0 && root < ranks, ErrorCode::invalid_argument, "there is no rank {} among {}", root,
          ranks);
  return {.function = broadcasts, .detail = static_cast<uint32_t>(root), .count = bytes};
}

Call barrier_call() {
  return {.function = barriers};
}

std::string difference(int64_t rank, const Call& call, int64_t other_rank, const Call& other) {
  if (other == call) return "";
  return fmt::format("the ranks do not run the same: of rank {} {}, of rank {} {}", rank, describe(call),
                     other_rank, describe(other));
}

void check_members(std::span<const int64_t> members, int64_t ranks) {
  std::vector<int64_t> sorted(members.begin(), members.end());
  std::sort(sorted.begin(), sorted.end());
  require(!sorted.empty() && sorted.front() >= 0 && sorted.back() < ranks &&
              std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end(),
          ErrorCode::invalid_argument, "a group is of different ranks from 0 to {}", ranks - 1);
}

}  // namespace tessera::distribute
