#include "tessera/data/tables.h"

namespace tessera::data {

Registry<TableDescription>& tables() {
  static Registry<TableDescription> kinds("kind of tables");
  return kinds;
}

namespace {

std::vector<Contradiction> check_path(const Options& options) {
  if (!options.text("path").empty()) return {};
  return {{{"path"}, "'data.path' is missing"}};
}

const TableRegistration kRegistration(
    {.name = "csv",
     .documentation = "comma-separated values, whose first line names the columns",
     .options = {{.key = "path",
                  .value = std::string(),
                  .documentation = "The file",
                  .is_path = true,
                  .resuming = Resuming::free}},
     .open = [](const Options& options,
                const std::vector<std::string>& columns) { return read_csv(options.text("path"), columns); },
     .check = check_path});

}  // namespace
}  // namespace tessera::data
