// Errors of kernels say of which node they are.
#pragma once

#include <string>

#include "tessera/base/foreign_error.h"
#include "tessera/graph/graph.h"

namespace tessera {

// "fused:convolution" for fused nodes.
std::string operator_name_with_kind(const Node& node);

// The same error, of the kernel and the node.
[[noreturn]] void fail_in_kernel(const Error& error, const std::string& kernel, const Node& node);

// What `work` returns. Whatever it throws becomes an Error that names the kernel and the node.
template <typename Work>
decltype(auto) naming_kernel(const std::string& kernel, const Node& node, const Work& work) {
  try {
    return work();
  } catch (const std::exception& exception) {
    fail_in_kernel(as_error(exception), kernel, node);
  }
}

}  // namespace tessera
