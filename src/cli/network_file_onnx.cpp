// Networks in the ONNX format as one static graph, or as the several that they are cut into; built where the
// reader of ONNX is.
#include <set>

#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/onnx/onnx.h"
#include "tessera/program/runner.h"

#include "cli/network_file.h"
#include "cli/subject.h"

namespace tessera::cli {
namespace {

// Of all inputs that must be given and are not.
class InputTypes {
 public:
  InputTypes(const std::string& path, const program::Block& main, const OpenSizes& sizes,
             const std::map<std::string, Tensor>& given = {})
      : path_(path), batch_(sizes.batch) {
    for (const auto& [name, size] : sizes.others)
      others_[onnx::symbol_of(name)] = size;  // as the file has it, or we
    for (const program::Declaration& input : main.inputs) {
      if (!main.constants.contains(input.name) && !given.contains(input.name))
        types_[input.name] = type_of(input);
    }
    for (const auto& [name, size] : others_) {
      if (symbols_.contains(name)) continue;
      fail(ErrorCode::invalid_argument, "--size: '{}' has no size '{}'{}", path, name,
           did_you_mean(name, {symbols_.begin(), symbols_.end()}));
    }
  }

  const std::map<std::string, TensorType>& all() const { return types_; }

 private:
  TensorType type_of(const program::Declaration& input) {
    require(input.tensor.has_value(), ErrorCode::unsupported,
            "{}: input '{}' is {}; only tensors of known rank can be synthetic: see `tessera run`", path_,
            input.name, input.type);
    TensorType type = *input.tensor;
    SymbolBindings bindings = others_;
    for (size_t axis = 0; axis < type.shape.size(); ++axis) {
      std::set<std::string> symbols;
      type.shape[axis].collect_symbols(symbols);
      symbols_.insert(symbols.begin(), symbols.end());
      for (const std::string& symbol : symbols) {
        if (axis == 0) bindings.emplace(symbol, batch_);
        require(bindings.contains(symbol), ErrorCode::invalid_argument,
                "{}: input '{}' is {}: say how large by --size {}=N", path_, input.name, input.type, symbol);
      }
    }
    type.shape = substitute(type.shape, bindings);
    return type;
  }

  const std::string& path_;
  int64_t batch_;
  SymbolBindings others_;
  std::map<std::string, TensorType> types_;
  std::set<std::string> symbols_;
};

NetworkFile read_onnx(const std::string& path, const OpenSizes& sizes) {
  const program::Runner runner(onnx::load(path), {.devices = {Device::reference()}});
  program::Instance instance = runner.instantiate(InputTypes(path, *runner.module().main, sizes).all());
  return {.graph = std::move(instance.graph), .weights = std::move(instance.weights)};
}

bool is_single_graph(const program::Runner& runner, const std::map<std::string, TensorType>& types) {
  try {
    runner.instantiate(types);
    return true;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::unsupported) throw;
    return false;
  }
}

NetworkPart part_of(const program::IslandReport& island) {
  NetworkPart part{
      .place = fmt::format("'{}', instructions {} to {}", island.block, island.first, island.end - 1),
      .why = island.why,
      .done = {},
      .runs = island.runs,
      .graph = nullptr};
  if (island.graph != nullptr) {
    part.graph = island.graph->clone();
  } else {
    part.done = island.device == "host" ? "on the host" : "nothing to run: it follows from what is known";
  }
  return part;
}

// Where values decide where a graph ends, it shows once they are there.
std::vector<NetworkPart> parts_of_onnx(const std::string& path, const OpenSizes& sizes,
                                       const std::map<std::string, Tensor>& contents) {
  program::Runner runner(onnx::load(path));
  const InputTypes types(path, *runner.module().main, sizes, contents);
  if (contents.empty() && is_single_graph(runner, types.all())) return {};
  std::map<std::string, program::Item> inputs(contents.begin(), contents.end());
  for (const auto& [name, type] : types.all()) {
    Tensor tensor(type.data_type, type.static_shape());
    fill_synthetic(tensor, name, kSyntheticLimit);
    inputs.emplace(name, std::move(tensor));
  }
  runner.run(inputs);
  std::vector<NetworkPart> parts;
  for (const program::IslandReport& island : runner.islands()) parts.push_back(part_of(island));
  return parts;
}

const NetworkFormatRegistration kOnnx({.name = ".onnx", .read = read_onnx, .parts = parts_of_onnx});

}  // namespace
}  // namespace tessera::cli
