// Networks in the ONNX format, run island by island; built where the reader of ONNX is.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tessera/onnx/onnx.h"
#include "tessera/program/runner.h"

#include "cli/runnable_file.h"

namespace tessera::cli {
namespace {

using program::Item;

program::RunnerOptions runner_options(const RunnableOptions& options) {
  program::RunnerOptions result{.devices = {Device::open(options.device.empty() ? "cpu" : options.device)}};
  if (!options.precision.empty()) result.compile.passes.precision = parse_precision(options.precision);
  return result;
}

class OnnxFile : public RunnableFile {
 public:
  OnnxFile(const std::string& path, const RunnableOptions& options)
      : runner_(onnx::load(path), runner_options(options)) {}

  std::vector<program::Declaration> inputs() const override { return runner_.module().main->inputs; }
  std::vector<program::Declaration> outputs() const override { return runner_.module().main->outputs; }
  std::map<std::string, Item> run(const std::map<std::string, Item>& inputs) override {
    return runner_.run(inputs);
  }

  void explain() const override {
    for (const program::IslandReport& island : runner_.islands()) {
      fmt::print("island of '{}': instructions {} to {} on {}, {} nodes; {}\n", island.block, island.first,
                 island.end - 1, island.device.empty() ? "no device" : island.device, island.nodes,
                 island.why);
      if (!island.host_operators.empty())
        fmt::print("  the device has no kernel for, so the host computes: {}\n",
                   fmt::join(island.host_operators, ", "));
    }
  }

 private:
  program::Runner runner_;
};

const RunnableFormatRegistration kOnnx({.name = ".onnx",
                                        .open = [](const std::string& path, const RunnableOptions& options) {
                                          return std::make_unique<OnnxFile>(path, options);
                                        }});

}  // namespace
}  // namespace tessera::cli
