#include "tessera/onnx/save.h"

#include "tessera/base/error.h"
#include "tessera/base/file.h"
#include "tessera/graph/operator.h"
#include "tessera/passes/decompose.h"
#include "tessera/passes/run_pass.h"
#include "tessera/train/step.h"

#include "onnx/graph_writer.h"

namespace tessera::onnx {
namespace {

// Of the format's messages: that of the operator set.
constexpr int64_t kVersion = 9;
constexpr int64_t kBfloatVersion = 10;
constexpr size_t kLeastExternal = 1024;  // bytes of a tensor: what shapes are made of stays in the model
constexpr uint64_t kPage = 4096;         // external tensors begin at one, so that readers can map them

// Into the type of that precision, as when it is compiled for it.
void lower(Graph& graph, Precision precision) {
  for (const Pass& pass : pipeline({.precision = precision, .frozen = true})) {
    if (pass.name == "lower_precision")
      run_pass(graph, pass, {.options = {.precision = precision, .frozen = true}}, {});
  }
}

void set_entry(::onnx::TensorProto& tensor, const std::string& key, const std::string& value) {
  auto* entry = tensor.add_external_data();
  entry->set_key(key);
  entry->set_value(value);
}

void keep_inside(const std::vector<GraphWriter::Contents>& all) {
  for (const auto& [initializer, tensor] : all) initializer->set_raw_data(tensor.raw(), tensor.bytes());
}

// Large tensors one after the other into the file of that name.
void keep_beside(const std::vector<GraphWriter::Contents>& all, const std::string& name, AtomicFile& file) {
  uint64_t place = 0;
  for (const auto& [initializer, tensor] : all) {
    if (tensor.bytes() < kLeastExternal) {
      initializer->set_raw_data(tensor.raw(), tensor.bytes());
      continue;
    }
    const std::string gap((kPage - place % kPage) % kPage, '\0');
    file.write(gap);
    file.write({static_cast<const std::byte*>(tensor.raw()), tensor.bytes()});
    place += gap.size();
    initializer->set_data_location(::onnx::TensorProto::EXTERNAL);
    set_entry(*initializer, "location", name);
    set_entry(*initializer, "offset", std::to_string(place));
    set_entry(*initializer, "length", std::to_string(tensor.bytes()));
    place += tensor.bytes();
  }
}

std::string bytes_of(const ::onnx::ModelProto& model, const std::string& name) {
  const uint64_t bytes = model.ByteSizeLong();
  require(bytes <= kMostModelBytes, ErrorCode::unsupported,
          "'{}' takes {} bytes without its weights, and one file of the ONNX format holds at most {}", name,
          bytes, kMostModelBytes);
  return model.SerializeAsString();
}

}  // namespace

void save(const Graph& graph, const std::map<std::string, Tensor>& weights, const std::filesystem::path& path,
          const SaveOptions& options) {
  const bool is_bfloat = options.precision == Precision::bf16;
  const std::unique_ptr<Graph> written = graph.clone();
  lower(*written, options.precision);
  decompose_composites(
      *written, [](const OperatorSchema& schema) { return node_writers().find(schema.name) != nullptr; });
  ::onnx::ModelProto model;
  model.set_ir_version(is_bfloat ? kBfloatVersion : kVersion);
  model.set_producer_name("tessera");
  model.add_opset_import()->set_version(is_bfloat ? kBfloatOperatorSet : kWrittenOperatorSet);
  for (const auto& [key, value] : options.metadata) {
    auto* entry = model.add_metadata_props();
    entry->set_key(key);
    entry->set_value(value);
  }
  GraphWriter writer(*written, weights, *model.mutable_graph());
  writer.write();
  uint64_t bytes = model.ByteSizeLong();
  for (const GraphWriter::Contents& one : writer.contents()) bytes += one.tensor.bytes();
  if (!options.external_data && bytes <= options.most_bytes) {
    keep_inside(writer.contents());
    return write_file(path, bytes_of(model, graph.name()));
  }
  const std::filesystem::path beside = path.string() + ".data";
  AtomicFile data(beside);
  keep_beside(writer.contents(), beside.filename().string(), data);
  AtomicFile file(path);
  file.write(bytes_of(model, graph.name()));
  data.commit();
  file.commit();
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
