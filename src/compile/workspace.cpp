#include "tessera/compile/workspace.h"

#include <algorithm>
#include <map>

#include <fmt/ranges.h>

#include "tessera/base/text.h"

namespace tessera {

void Workspace::reserve(int64_t bytes) {
  if (bytes <= bytes_) return;
  queue_->synchronize();
  // Not both at a time.
  memory_.reset();
  bytes_ = 0;
  memory_ = device_->allocate(bytes);
  bytes_ = bytes;
}

std::shared_ptr<const WorkspaceUse> Workspace::add_use(WorkspaceUse use) {
  auto added = std::make_shared<const WorkspaceUse>(std::move(use));
  const std::lock_guard lock(mutex_);
  std::erase_if(uses_, [](const auto& one) { return one.expired(); });
  uses_.push_back(added);
  return added;
}

std::vector<WorkspaceUse> Workspace::uses() const {
  std::vector<WorkspaceUse> result;
  const std::lock_guard lock(mutex_);
  for (const auto& one : uses_) {
    if (const auto use = one.lock()) result.push_back(*use);
  }
  return result;
}

WorkspaceNeeds needs_of(const std::vector<WorkspaceUse>& uses) {
  WorkspaceNeeds needs;
  for (const WorkspaceUse& use : uses) {
    needs.shared_bytes = std::max(needs.shared_bytes, use.bytes);
    needs.alone_bytes += use.bytes;
  }
  return needs;
}

std::string workspace_summary(const std::vector<WorkspaceUse>& uses) {
  if (uses.size() < 2) return "";
  std::map<std::string, std::vector<WorkspaceUse>> by_graph;
  for (const WorkspaceUse& use : uses) by_graph[use.graph].push_back(use);
  std::vector<std::pair<int64_t, std::string>> parts;
  for (const auto& [graph, own] : by_graph) {
    const int64_t largest = needs_of(own).shared_bytes;
    const std::string count = own.size() > 1 ? fmt::format(" ({} sizes)", own.size()) : "";
    parts.emplace_back(-largest,
                       fmt::format("{} {}{}", graph, format_bytes(static_cast<double>(largest)), count));
  }
  std::sort(parts.begin(), parts.end());
  std::vector<std::string> texts;
  for (const auto& [order, text] : parts) texts.push_back(text);
  const WorkspaceNeeds needs = needs_of(uses);
  return fmt::format("workspace: {} for {} executables ({} if each had its own): {}",
                     format_bytes(static_cast<double>(needs.shared_bytes)), uses.size(),
                     format_bytes(static_cast<double>(needs.alone_bytes)), fmt::join(texts, ", "));
}

}  // namespace tessera
