#include "infer/plan_text.h"

#include <nlohmann/json.hpp>

#include "tessera/base/error.h"

namespace tessera::infer {
namespace {

using Json = nlohmann::json;

Json size_json(const PlanSize& size) {
  return {{"batch", size.batch}, {"graph", print(*size.graph)}, {"kernels", size.kernels}};
}

PlanSize parse_size(const Json& json) {
  PlanSize size{.batch = json.at("batch").get<int64_t>(),
                .graph = parse_graph(json.at("graph").get_ref<const std::string&>()),
                .kernels = json.at("kernels").get<KernelNames>()};
  require(free_symbols(*size.graph).empty(), ErrorCode::invalid_file, "a graph's extents are open");
  require(size.graph->updates().empty(), ErrorCode::invalid_file, "a graph changes its variables");
  return size;
}

void check_batches(const std::vector<PlanSize>& sizes) {
  require(!sizes.empty(), ErrorCode::invalid_file, "there is no size");
  int64_t previous = 0;
  for (const PlanSize& size : sizes) {
    require(size.batch > previous, ErrorCode::invalid_file, "batch {} does not come after {}", size.batch,
            previous);
    previous = size.batch;
  }
}

PlanDescription description_of(const Json& json) {
  PlanDescription result;
  result.network = json.at("network").get<std::string>();
  result.program = json.at("program").get<std::string>();
  const Json& device = json.at("device");
  result.device = {.name = device.at("name").get<std::string>(),
                   .model = device.at("model").get<std::string>(),
                   .versions = device.at("versions").get<std::map<std::string, std::string>>()};
  result.precision = parse_precision(json.at("precision").get_ref<const std::string&>());
  result.deterministic = json.at("deterministic").get<bool>();
  for (const Json& size : json.at("sizes")) result.sizes.push_back(parse_size(size));
  check_batches(result.sizes);
  return result;
}

}  // namespace

std::string format_description(const PlanDescription& description) {
  Json sizes = Json::array();
  for (const PlanSize& size : description.sizes) sizes.push_back(size_json(size));
  const PlanDevice& device = description.device;
  const Json json = {
      {"network", description.network},
      {"program", description.program},
      {"device", {{"name", device.name}, {"model", device.model}, {"versions", device.versions}}},
      {"precision", to_string(description.precision)},
      {"deterministic", description.deterministic},
      {"sizes", std::move(sizes)}};
  return json.dump();
}

PlanDescription parse_description(std::string_view text) {
  try {
    return description_of(Json::parse(text));
  } catch (const Json::exception& error) {
    fail(ErrorCode::invalid_file, "its description: {}", error.what());
  } catch (const Error& error) {  // of a graph, or of a word
    fail(ErrorCode::invalid_file, "its description: {}", error.what());
  }
}

}  // namespace tessera::infer
