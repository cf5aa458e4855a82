// Ranks in threads of a test, or the processes that a launcher has started the tests as.
#pragma once

#include <functional>
#include <memory>

#include "tessera/compile/communicator.h"

namespace tessera::testing {

// The group of the processes that run the same tests together; null where this one is alone.
const std::shared_ptr<Communicator>& processes();

// As on_ranks(), which it is where this process is alone. Else the ranks are the first so many processes, and
// the others have nothing to do; all throw when one has aborted.
void on_any_ranks(int64_t ranks, const std::function<void(const std::shared_ptr<Communicator>&)>& work);

}  // namespace tessera::testing
