// Networks by name, with their options: what recipes and commands choose from.
#pragma once

#include <functional>
#include <initializer_list>
#include <string>
#include <vector>

#include "tessera/base/option.h"
#include "tessera/base/registry.h"
#include "tessera/models/model.h"

namespace tessera::models {

struct NetworkDescription {
  std::string name;
  std::string documentation;  // one line with the source
  ClassifierOptions defaults = {};
  std::vector<Option> options = {};  // its own, beside those
  std::function<Model(const ClassifierOptions& options, const Options& own)> create;
};

Registry<NetworkDescription>& networks();

struct NetworkRegistration {
  NetworkRegistration(std::initializer_list<NetworkDescription> descriptions) {
    for (const NetworkDescription& description : descriptions) networks().add(description);
  }
};

// Throws Error(invalid_argument) with the nearest name.
const NetworkDescription& describe(const std::string& name);
// What `own` leaves out has its default. Throws as describe().
Model create(const std::string& name, const ClassifierOptions& options, const Options& own = {});
inline Model create(const std::string& name) {
  return create(name, describe(name).defaults);
}

}  // namespace tessera::models
