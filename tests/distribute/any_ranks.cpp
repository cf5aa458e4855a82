#include "distribute/any_ranks.h"

#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "tessera/distribute/registry.h"

#include "support/ranks.h"

namespace tessera::testing {
namespace {

std::shared_ptr<Communicator> group_of_all;

// Found and left while main() runs.
class Together : public ::testing::Environment {
 public:
  void SetUp() override { group_of_all = distribute::connect_by_environment(); }
  void TearDown() override { group_of_all.reset(); }
};

const ::testing::Environment* const kTogether = ::testing::AddGlobalTestEnvironment(new Together);

}  // namespace

const std::shared_ptr<Communicator>& processes() {
  return group_of_all;
}

void on_any_ranks(int64_t ranks, const std::function<void(const std::shared_ptr<Communicator>&)>& work) {
  if (group_of_all == nullptr) return on_ranks(ranks, work);
  std::vector<int64_t> members(static_cast<size_t>(ranks));
  std::iota(members.begin(), members.end(), 0);
  const std::shared_ptr<Communicator> group = group_of_all->group(members);
  if (group != nullptr) work(group);
  group_of_all->barrier();
}

}  // namespace tessera::testing
