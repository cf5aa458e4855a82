#include <fmt/format.h>

#include "tessera/models/registry.h"

#include "cli/commands.h"
#include "cli/json.h"

namespace tessera::cli {
namespace {

void add_models(CLI::App* command) {
  auto json = std::make_shared<bool>(false);
  command->add_flag("--json", *json, "Print [{\"name\", \"parameters\", \"documentation\"}]");
  command->callback([json] {
    auto list = nlohmann::json::array();
    for (const models::NetworkDescription* description : models::networks().all()) {
      const models::NetworkDescription& model = *description;
      const auto network = models::build(models::create(model.name), 1);
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

const CommandRegistration kRegistration(
    {.name = "models",
     .documentation = "List the networks that recipes and commands know by name",
     .add = add_models});

}  // namespace
}  // namespace tessera::cli
