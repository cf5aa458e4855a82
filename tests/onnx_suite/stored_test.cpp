#include "stored_test.h"

#include <algorithm>
#include <cmath>
#include <exception>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tessera/base/error.h"
#include "tessera/base/file.h"
#include "tessera/onnx/onnx.h"
#include "tessera/program/runner.h"

namespace tessera::onnx_suite {

namespace {

namespace fs = std::filesystem;
using program::Item;

// In units in the last place of the wanted number; 0 of types of fewer than 16 bits, whose steps are all
// seen.
double last_places_between(double given, double wanted, DataType type) {
  const double place = std::ldexp(2 * testing::unit_roundoff(type), std::ilogb(wanted));
  return place > 0 ? std::abs(given - wanted) / place : 0;
}

// Of two values that are to be the same, how they differ; "" where they do not. `last_places`: by how many
// units in the last place at most, among elements whose difference is more than the absolute tolerance.
std::string difference(const Tensor& given, const Tensor& wanted, const testing::Tolerance& tolerance,
                       double& last_places) {
  if (given.data_type() != wanted.data_type() || given.shape() != wanted.shape())
    return fmt::format("{}, not {}", to_string(Item(given)), to_string(Item(wanted)));
  if (!is_floating(given.data_type())) return given.identical(wanted) ? "" : "other integers";
  for (int64_t i = 0; i < given.size(); ++i) {
    const double a = given.at(i);
    const double b = wanted.at(i);
    if (a == b || (std::isnan(a) && std::isnan(b))) continue;
    if (std::abs(a - b) > tolerance.absolute && b != 0 && std::isfinite(b))
      last_places = std::max(last_places, last_places_between(a, b, wanted.data_type()));
    if (!(std::abs(a - b) <= tolerance.absolute + tolerance.relative * std::abs(b)) || std::isinf(b))
      return fmt::format("element {} is {:.9g}, not {:.9g}", i, a, b);
  }
  return "";
}

std::string difference(const Item& given, const Item& wanted, const testing::Tolerance& tolerance,
                       double& last_places) {
  if (given.tensor() != nullptr && wanted.tensor() != nullptr)
    return difference(*given.tensor(), *wanted.tensor(), tolerance, last_places);
  if (given.text() != nullptr && wanted.text() != nullptr)
    return *given.text() == *wanted.text() ? "" : "other texts";
  if (given.sequence() != nullptr && wanted.sequence() != nullptr &&
      given.sequence()->size() == wanted.sequence()->size()) {
    for (size_t i = 0; i < given.sequence()->size(); ++i) {
      const std::string text =
          difference((*given.sequence())[i], (*wanted.sequence())[i], tolerance, last_places);
      if (!text.empty()) return text;
    }
    return "";
  }
  if (given.absent() && wanted.absent()) return "";
  return fmt::format("{}, not {}", to_string(given), to_string(wanted));
}

onnx::ValueKind kind_of(const program::Declaration& declaration) {
  if (declaration.type.starts_with("sequence")) return onnx::ValueKind::sequence;
  if (declaration.type.starts_with("optional")) return onnx::ValueKind::optional;
  return onnx::ValueKind::tensor;
}

// What the wheel's own runner gives a network: i / n of n elements, an extent that is left open being 1.
Tensor made_input(const program::Declaration& declaration) {
  require(declaration.tensor && declaration.tensor->data_type == DataType::fp32, ErrorCode::unsupported,
          "input '{}' is {}, and inputs are made of fp32 alone", declaration.name, declaration.type);
  Shape shape;
  for (const Dimension& extent : declaration.tensor->shape)
    shape.push_back(extent.is_static() ? extent.value() : 1);
  Tensor result(DataType::fp32, shape);
  const auto count = static_cast<double>(result.size());
  for (int64_t i = 0; i < result.size(); ++i) result.set(i, static_cast<double>(i) / count);
  return result;
}

std::map<std::string, Item> inputs_of(const StoredTest& test, const std::string& run,
                                      const program::Block& main) {
  std::map<std::string, Item> inputs;
  for (size_t i = 0; i < main.inputs.size(); ++i) {
    const program::Declaration& input = main.inputs[i];
    const std::string file = fmt::format("{}input_{}.pb", run, i);
    if (test.makes_inputs) {
      if (main.constants.count(input.name) == 0) inputs[input.name] = made_input(input);
    } else if (fs::exists(file)) {
      inputs[input.name] = onnx::load_value(file, kind_of(input));
    }
  }
  return inputs;
}

void run_once(program::Runner& runner, const StoredTest& test, const std::string& run, Outcome& outcome) {
  const program::Block& main = *runner.module().main;
  const std::map<std::string, Item> outputs = runner.run(inputs_of(test, run, main));
  for (size_t i = 0; i < main.outputs.size(); ++i) {
    const std::string file = fmt::format("{}output_{}.pb", run, i);
    if (!fs::exists(file)) continue;
    const program::Declaration& output = main.outputs[i];
    ++outcome.compared;
    const std::string text = difference(outputs.at(output.name), onnx::load_value(file, kind_of(output)),
                                        test.tolerance, outcome.last_places);
    if (!text.empty() && outcome.failure.empty())
      outcome.failure = fmt::format("output '{}': {}", output.name, text);
  }
}

// "light_NAME.onnx" with its outputs beside it. How close these must be is told where the wheel lists its
// whole networks.
StoredTest network(const fs::path& data, const fs::path& model) {
  StoredTest test{.model = model, .makes_inputs = true};
  const std::string stem = model.stem().string();
  test.runs = {(model.parent_path() / stem).string() + "_"};
  const fs::path listed = data / "real" / ("test_" + stem.substr(stem.find('_') + 1)) / "data.json";
  const nlohmann::json told = nlohmann::json::parse(read_text_file(listed));
  test.tolerance = {told.at("atol").get<double>(), told.at("rtol").get<double>()};
  return test;
}

StoredTest in_folder(const fs::path& folder) {
  StoredTest test{.model = folder / "model.onnx"};
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.is_directory()) test.runs.push_back(entry.path().string() + "/");
  }
  return test;
}

}  // namespace

std::string collection_of(const std::string& name) {
  const size_t slash = name.find('/');
  return slash == std::string::npos ? kCollections[0] : name.substr(0, slash);
}

std::map<std::string, StoredTest> find_tests(const fs::path& data) {
  std::map<std::string, StoredTest> tests;
  for (const std::string collection : kCollections) {
    const std::string prefix = collection == kCollections[0] ? "" : collection + "/";
    for (const auto& entry : fs::directory_iterator(data / collection)) {
      if (collection == kNetworks && entry.path().extension() == ".onnx")
        tests[prefix + entry.path().stem().string()] = network(data, entry.path());
      else if (fs::exists(entry.path() / "model.onnx"))
        tests[prefix + entry.path().filename().string()] = in_folder(entry.path());
    }
  }
  return tests;
}

Outcome run_test(const StoredTest& test, const std::shared_ptr<Device>& device) {
  Outcome outcome;
  try {
    const auto module = onnx::load(test.model);
    if (!module->main->instructions.empty())
      outcome.first_operator = module->main->instructions[0].operator_name;
    program::Runner runner(module, {.devices = {device}});
    for (const std::string& run : test.runs) run_once(runner, test, run, outcome);
    if (outcome.compared == 0) outcome.failure = "it has no outputs to compare with";
    for (const program::IslandReport& island : runner.islands())
      outcome.host = outcome.host || island.device == "host" || !island.host_operators.empty();
  } catch (const std::exception& error) {
    outcome.failure = error.what();
  }
  return outcome;
}

}  // namespace tessera::onnx_suite
