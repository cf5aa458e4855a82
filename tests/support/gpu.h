// Opening the GPU of a test, where there is one.
#pragma once

#include <chrono>
#include <thread>

#include "tessera/base/error.h"

namespace tessera::testing {

// What `open` opens; null on a machine without a GPU, and nowhere else: a GPU that fails must not look like
// none. Tests run side by side, and some take most of the memory for a moment, so that its lack is waited
// out.
template <typename Open>
auto opened_or_null(const Open& open) -> decltype(open()) {
  constexpr int kTries = 60;
  for (int tried = 1;; ++tried) {
    try {
      return open();
    } catch (const Error& error) {
      if (error.code() == ErrorCode::unsupported) return nullptr;
      if (error.code() != ErrorCode::out_of_memory || tried == kTries) throw;
    }
    std::this_thread::sleep_for(std::chrono::seconds(1));
  }
}

}  // namespace tessera::testing
