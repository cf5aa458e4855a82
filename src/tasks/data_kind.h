// What the section [data] has whatever kind of data it names.
#pragma once

#include <string>
#include <vector>

#include "tessera/base/option.h"
#include "tessera/data/registry.h"

namespace tessera::tasks {

using data::check_path;
using data::path_option;
// What was found in the section alone, by whole keys.
std::vector<Contradiction> of_data(std::vector<Contradiction> found);
// What the check of a kind finds.
template <typename Kind>
std::vector<Contradiction> check_kind(const Kind& kind, const Options& settings) {
  return kind.check ? of_data(kind.check(settings.section("data"))) : std::vector<Contradiction>{};
}
// What people call the data: the last part of data.path, or of kinds without one data.kind.
std::string data_name(const Options& settings);

}  // namespace tessera::tasks
