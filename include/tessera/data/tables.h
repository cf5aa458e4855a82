// Kinds of tables by name, with their options: what recipes of columns choose from.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tessera/base/option.h"
#include "tessera/base/registry.h"
#include "tessera/data/csv.h"

namespace tessera::data {

struct TableDescription {
  std::string name;
  std::string documentation;  // one line
  std::vector<Option> options;
  // The named columns in the order asked for, all of as many rows. Throws as read_csv().
  std::function<std::vector<TextColumn>(const Options& options, const std::vector<std::string>& columns)>
      open;
  // What cannot go together; empty: nothing.
  std::function<std::vector<Contradiction>(const Options& options)> check = {};
};

Registry<TableDescription>& tables();

struct TableRegistration {
  explicit TableRegistration(TableDescription description) { tables().add(std::move(description)); }
};

}  // namespace tessera::data
