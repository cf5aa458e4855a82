// Which kernels a backend has for which operator: filled by its files before main(), read by its device.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tessera/base/error.h"
#include "tessera/compile/kernel.h"
#include "tessera/passes/fusion_pattern.h"

namespace tessera::backend {

// The key of a node: its operator's name, or "fused:KIND" for a fused node of that kind.
std::string kernel_key(const Node& node);

// A candidate that refuses where `plan` calls refuse(), with its reason.
KernelCandidate checked_candidate(const std::string& name,
                                  std::function<KernelMaker(const KernelRequest& request)> plan);
// The same for kernels that are made of what `read` finds in the request.
template <typename K, typename Read>
KernelCandidate candidate_of(const std::string& name, Read read) {
  return checked_candidate(name, [read = std::move(read)](const KernelRequest& request) -> KernelMaker {
    return [found = read(request)] { return std::make_unique<K>(found); };
  });
}

// A candidate that takes every node it is asked for.
KernelCandidate willing_candidate(
    const std::string& name, std::function<std::unique_ptr<Kernel>(const KernelRequest& request)> create);
// The same, for nodes that no other candidate takes.
KernelCandidate fallback_candidate(
    const std::string& name, std::function<std::unique_ptr<Kernel>(const KernelRequest& request)> create);

// No output of the node has an element.
bool makes_nothing(const Node& node);
// "nothing", for such nodes that no other candidate takes: does nothing.
KernelCandidate nothing_candidate();

// Throws Error(internal) naming a key that no node has: neither an operator nor "fused:" before the kind of a
// pattern, of a cluster or of an operator that takes its neighbors in.
void check_kernel_keys(const std::vector<std::string>& keys, const std::vector<FusionPattern>& patterns);

// Entry: what the backend keeps for an operator; has a member `key`.
template <typename Entry>
class KernelTable {
 public:
  // Throws Error(internal) when the key is taken.
  void add(Entry entry) {
    const std::string key = entry.key;
    require(entries_.emplace(key, std::move(entry)).second, ErrorCode::internal,
            "kernels of '{}' are registered twice", key);
  }
  // Once all have registered themselves, with all patterns that the device ever brings: a kernel that no node
  // would reach was misspelt. Throws as check_kernel_keys().
  void check(const std::vector<FusionPattern>& patterns) const {
    std::vector<std::string> keys;
    for (const auto& [key, entry] : entries_) keys.push_back(key);
    check_kernel_keys(keys, patterns);
  }
  // Null when there is none.
  const Entry* find(const std::string& key) const {
    const auto found = entries_.find(key);
    return found == entries_.end() ? nullptr : &found->second;
  }

 private:
  std::map<std::string, Entry> entries_;
};

}  // namespace tessera::backend
