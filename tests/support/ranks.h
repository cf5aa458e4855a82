// Ranks in threads of a test.
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "tessera/base/error.h"
#include "tessera/distribute/exchange.h"

namespace tessera::testing {

// Calls `work` on every rank at once, each in a thread of its own with its end of a group of all. Throws what
// the first rank threw whose error is not that another rank failed, or else what the first rank threw.
inline void on_ranks(int64_t ranks, const std::function<void(const std::shared_ptr<Communicator>&)>& work) {
  const std::vector<std::shared_ptr<Communicator>> group = distribute::thread_group(ranks);
  std::vector<std::exception_ptr> errors(group.size());
  std::vector<std::thread> threads;
  for (size_t rank = 0; rank < group.size(); ++rank) {
    threads.emplace_back([&, rank] {
      try {
        work(group[rank]);
      } catch (const std::exception& error) {
        errors[rank] = std::current_exception();
        group[rank]->abort(error.what());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::exception_ptr first;
  for (const std::exception_ptr& error : errors) {
    if (error == nullptr) continue;
    if (first == nullptr) first = error;
    try {
      std::rethrow_exception(error);
    } catch (const Error& known) {
      if (known.code() != ErrorCode::rank_failure) throw;
    } catch (...) {
      throw;
    }
  }
  if (first != nullptr) std::rethrow_exception(first);
}

}  // namespace tessera::testing
