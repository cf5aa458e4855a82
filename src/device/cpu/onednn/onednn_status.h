// What kind of error a status of oneDNN is.
#pragma once

#include <dnnl.hpp>

#include "tessera/device/common/refusal.h"

namespace tessera::cpu {

// out_of_memory; unsupported: it has no implementation; internal: we asked for what cannot be; device_fault:
// all else, what is not known among it.
inline ErrorCode error_code(dnnl_status_t status) {
  switch (status) {
    case dnnl_out_of_memory:
      return ErrorCode::out_of_memory;
    case dnnl_unimplemented:
      return ErrorCode::unsupported;
    case dnnl_invalid_arguments:
      return ErrorCode::internal;
    default:
      return ErrorCode::device_fault;
  }
}

// What `work` returns, which makes primitives or runs them: what was planned works, or it is no refusal.
template <typename Work>
decltype(auto) calling_onednn(const Work& work) {
  try {
    return work();
  } catch (const dnnl::error& error) {
    fail(error_code(error.status), "oneDNN: {}", error.what());
  }
}

// What `describe` returns, which makes descriptors alone. Refuses what oneDNN has no implementation of, or no
// words for. Lack of memory is no refusal: another kernel would not find more, and would give other bits.
template <typename Describe>
auto describing_to_onednn(const Describe& describe) {
  return calling_onednn([&] {
    try {
      return describe();
    } catch (const dnnl::error& error) {
      const bool refused = error.status == dnnl_unimplemented || error.status == dnnl_invalid_arguments;
      backend::refuse_unless(!refused, "oneDNN: {}", error.what());
      throw;
    }
  });
}

}  // namespace tessera::cpu
