#include "tessera/compile/limit.h"

#include <algorithm>

namespace tessera {

std::optional<NodeLimit> limit_of(const NodeReport& node, const DeviceDescription& device) {
  if (device.bytes_per_second <= 0) return std::nullopt;
  const double moving = node.bytes / device.bytes_per_second;
  double computing = 0;
  if (node.flops > 0) {
    if (!node.arithmetic.has_value()) return std::nullopt;
    const auto peak = device.flops_per_second.find(*node.arithmetic);
    if (peak == device.flops_per_second.end()) return std::nullopt;
    computing = node.flops / peak->second;
  }
  return NodeLimit{std::max(moving, computing), moving >= computing};
}

}  // namespace tessera
