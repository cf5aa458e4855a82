// What users name, by name: each registers itself in its own file.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tessera/base/error.h"
#include "tessera/base/option.h"
#include "tessera/base/text.h"

namespace tessera {

// Entries have a member `name`. Filled before main(), by objects of namespace scope; a program may add its
// own.
template <typename Entry>
class Registry {
 public:
  // "optimizer": what messages call an entry.
  explicit Registry(std::string kind) : kind_(std::move(kind)) {}

  // Throws Error(internal) when the name is taken.
  void add(Entry entry) {
    std::string name = entry.name;
    const bool is_new = entries_.emplace(name, std::move(entry)).second;
    require(is_new, ErrorCode::internal, "two entries register the {} '{}'", kind_, name);
  }

  const Entry* find(const std::string& name) const {
    const auto found = entries_.find(name);
    return found == entries_.end() ? nullptr : &found->second;
  }
  // Throws Error(invalid_argument) with the nearest name.
  const Entry& get(const std::string& name) const {
    if (const Entry* entry = find(name)) return *entry;
    fail(ErrorCode::invalid_argument, "there is no {} '{}'{}", kind_, name, did_you_mean(name, names()));
  }
  std::vector<std::string> names() const {  // sorted
    std::vector<std::string> names;
    for (const auto& [name, entry] : entries_) names.push_back(name);
    return names;
  }
  std::vector<const Entry*> all() const {  // by name
    std::vector<const Entry*> all;
    for (const auto& [name, entry] : entries_) all.push_back(&entry);
    return all;
  }

 private:
  std::string kind_;
  std::map<std::string, Entry> entries_;
};

// Of entries with options of their own, by name.
template <typename Entry>
std::vector<OptionChoice> choices_of(const Registry<Entry>& registry) {
  std::vector<OptionChoice> choices;
  for (const Entry* entry : registry.all()) {
    OptionChoice& choice = choices.emplace_back(OptionChoice{entry->name, "", &entry->options});
    if constexpr (requires { entry->documentation; }) choice.documentation = entry->documentation;
  }
  return choices;
}

}  // namespace tessera
