#include <fmt/format.h>

#include "tessera/models/model.h"

#include "cli/commands.h"
#include "cli/json.h"

namespace tessera::cli {

void add_models(CLI::App& program) {
  CLI::App* command =
      program.add_subcommand("models", "List the networks that recipes and commands know by name");
  auto json = std::make_shared<bool>(false);
  command->add_flag("--json", *json, "Print [{\"name\", \"parameters\", \"documentation\"}]");
  command->callback([json] {
    auto list = nlohmann::json::array();
    for (const models::ModelDescription& model : models::all()) {
      const auto network = models::build(model.create(model.defaults), 1);
      const int64_t parameters = models::parameter_count(network.variables);
      if (*json) {
        list.push_back(
            {{"name", model.name}, {"parameters", parameters}, {"documentation", model.documentation}});
      } else {
        fmt::print("{:<14} {:>12} parameters  {}\n", model.name, parameters, model.documentation);
      }
    }
    if (*json) fmt::print("{}\n", dump_json(list, 2));
  });
}

}  // namespace tessera::cli
