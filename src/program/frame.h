// The values of one block while it runs, and of the blocks around it.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <unordered_map>

#include "tessera/graph/graph.h"
#include "tessera/program/module.h"

namespace tessera::program {

struct FrameEntry {
  Item item;
  std::optional<TensorType> type_only = {};  // of an input whose contents are not given
  bool settled = false;                      // made of constants and shapes alone
  Value* value = nullptr;                    // of a type_only input that the graph's owner has already
};

class Frame {
 public:
  explicit Frame(const Block& block, const Frame* outer = nullptr) : block_(block), outer_(outer) {}

  const Block& block() const { return block_; }
  void set(const std::string& name, FrameEntry entry) {
    if (!name.empty()) values_.insert_or_assign(name, std::move(entry));
  }
  void erase(const std::string& name) { values_.erase(name); }

  // Of this block or the nearest one around it that has the name; `is_constant` says that it is a constant of
  // the module.
  struct Found {
    const Item* item = nullptr;  // null: there is no such value
    const FrameEntry* entry = nullptr;
    bool is_constant = false;
    bool is_default = false;  // of an input that is not given
  };
  Found find(const std::string& name) const {
    for (const Frame* frame = this; frame != nullptr; frame = frame->outer_) {
      if (const auto value = frame->values_.find(name); value != frame->values_.end())
        return {&value->second.item, &value->second, false};
      if (const auto constant = frame->block_.constants.find(name); constant != frame->block_.constants.end())
        return {&constant->second, nullptr, true, frame->has_input(name)};
    }
    return {};
  }

 private:
  bool has_input(const std::string& name) const {
    return std::any_of(block_.inputs.begin(), block_.inputs.end(),
                       [&](const Declaration& input) { return input.name == name; });
  }

  const Block& block_;
  const Frame* outer_;
  std::unordered_map<std::string, FrameEntry> values_;
};

}  // namespace tessera::program
