// Networks in the ONNX format as one static graph; built where the reader of ONNX is.
#include <set>

#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/onnx/onnx.h"
#include "tessera/program/runner.h"

#include "cli/network_file.h"

namespace tessera::cli {
namespace {

// Of all inputs that must be given.
class InputTypes {
 public:
  InputTypes(const std::string& path, const program::Block& main, const OpenSizes& sizes)
      : path_(path), sizes_(sizes) {
    for (const program::Declaration& input : main.inputs) {
      if (!main.constants.contains(input.name)) types_[input.name] = type_of(input);
    }
    for (const auto& [name, size] : sizes.others) {
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
    SymbolBindings bindings = sizes_.others;
    for (size_t axis = 0; axis < type.shape.size(); ++axis) {
      std::set<std::string> symbols;
      type.shape[axis].collect_symbols(symbols);
      symbols_.insert(symbols.begin(), symbols.end());
      for (const std::string& symbol : symbols) {
        if (axis == 0) bindings.emplace(symbol, sizes_.batch);
        require(bindings.contains(symbol), ErrorCode::invalid_argument,
                "{}: input '{}' is {}: say how large by --size {}=N", path_, input.name, input.type, symbol);
      }
    }
    type.shape = substitute(type.shape, bindings);
    return type;
  }

  const std::string& path_;
  const OpenSizes& sizes_;
  std::map<std::string, TensorType> types_;
  std::set<std::string> symbols_;
};

NetworkFile read_onnx(const std::string& path, const OpenSizes& sizes) {
  const program::Runner runner(onnx::load(path), {.devices = {Device::reference()}});
  program::Instance instance = runner.instantiate(InputTypes(path, *runner.module().main, sizes).all());
  return {.graph = std::move(instance.graph), .weights = std::move(instance.weights)};
}

const NetworkFormatRegistration kOnnx({.name = ".onnx", .read = read_onnx});

}  // namespace
}  // namespace tessera::cli
