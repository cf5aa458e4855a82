#include "tessera/onnx/save.h"

#include "tessera/base/error.h"
#include "tessera/base/file.h"
#include "tessera/graph/operator.h"
#include "tessera/passes/decompose.h"
#include "tessera/train/step.h"

#include "onnx/graph_writer.h"

namespace tessera::onnx {
namespace {

constexpr int64_t kVersion = 9;  // of the format's messages: that of the operator set
constexpr uint64_t kMostBytes = (uint64_t{1} << 31) - 1;  // of one message

void check_size(const Graph& graph) {
  uint64_t bytes = 0;
  for (const auto& input : graph.inputs()) {
    if (input->role() != InputRole::input) bytes += static_cast<uint64_t>(input->type().bytes());
  }
  require(bytes < kMostBytes, ErrorCode::unsupported,
          "the variables of '{}' take {} bytes, and one file of the ONNX format holds at most {}",
          graph.name(), bytes, kMostBytes);
}

}  // namespace

void save(const Graph& graph, const std::map<std::string, Tensor>& weights, const std::filesystem::path& path,
          const SaveOptions& options) {
  check_size(graph);
  const std::unique_ptr<Graph> written = graph.clone();
  decompose_composites(
      *written, [](const OperatorSchema& schema) { return node_writers().find(schema.name) != nullptr; });
  ::onnx::ModelProto model;
  model.set_ir_version(kVersion);
  model.set_producer_name("tessera");
  model.add_opset_import()->set_version(kWrittenOperatorSet);
  for (const auto& [key, value] : options.metadata) {
    auto* entry = model.add_metadata_props();
    entry->set_key(key);
    entry->set_value(value);
  }
  GraphWriter(*written, weights, *model.mutable_graph()).write();
  const uint64_t bytes = model.ByteSizeLong();
  require(bytes <= kMostBytes, ErrorCode::unsupported,
          "'{}' takes {} bytes, and one file of the ONNX format holds at most {}", graph.name(), bytes,
          kMostBytes);
  write_file(path, model.SerializeAsString());
}

void save(const nn::Task& task, const std::map<std::string, Tensor>& variables,
          const std::filesystem::path& path, const SaveOptions& options) {
  const train::StepGraph served = train::build_served(task);
  std::map<std::string, Tensor> weights;
  for (const nn::Variable& variable : served.variables) {
    const auto found = variables.find(variable.name);
    require(found != variables.end(), ErrorCode::invalid_argument,
            "nothing says what the variable '{}' holds", variable.name);
    weights.emplace(variable.name, nn::from_file_layout(variable, found->second));
  }
  save(*served.graph, weights, path, options);
}

}  // namespace tessera::onnx
