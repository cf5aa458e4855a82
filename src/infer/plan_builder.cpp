#include "tessera/infer/plan_builder.h"

#include <algorithm>
#include <utility>

#include "tessera/base/error.h"
#include "tessera/compile/kernel_artifacts.h"

#include "infer/kept_type.h"
#include "infer/plan_text.h"

namespace tessera::infer {
namespace {

Tensor as_kept(const Tensor& contents) {
  const TensorType kept =
      kept_type({contents.data_type(), SymbolicShape(contents.shape().begin(), contents.shape().end())});
  return Tensor::share(kept.data_type, kept.static_shape(), contents.owner());
}

Tensor tensor_of(const std::string& bytes) {
  Tensor tensor(DataType::uint8, {std::ssize(bytes)});
  std::copy(bytes.begin(), bytes.end(), static_cast<char*>(tensor.raw()));
  return tensor;
}

}  // namespace

PlanBuilder::PlanBuilder(std::string network, const DeviceDescription& device, const CompileOptions& options)
    : description_{.network = std::move(network),
                   .program = TESSERA_VERSION,
                   .device = {device.name, device.model, device.versions},
                   .precision = options.passes.precision,
                   .deterministic = options.passes.deterministic,
                   .sizes = {}} {}

void PlanBuilder::add(int64_t batch, const Executable& executable, const VariableSource& value) {
  std::vector<PlanSize>& sizes = description_.sizes;
  const auto place = std::lower_bound(sizes.begin(), sizes.end(), batch,
                                      [](const PlanSize& size, int64_t other) { return size.batch < other; });
  require(place == sizes.end() || place->batch != batch, ErrorCode::invalid_argument,
          "{}: batch {} is there twice", description_.network, batch);
  PreparedGraph prepared = executable.prepared();
  for (const auto& input : prepared.graph->inputs()) {
    if (input->role() == InputRole::input) continue;
    const auto known = prepared.constants.find(input->name());
    std::optional<Tensor> contents;
    if (known != prepared.constants.end()) contents = known->second;
    if (!contents.has_value() && value) contents = value(input->name());
    if (!contents.has_value() && input->initial() != nullptr) contents = *input->initial();
    require(contents.has_value(), ErrorCode::invalid_argument, "{}: nothing says what '{}' holds",
            description_.network, input->name());
    const std::string name = keep(input->name(), *contents, *prepared.graph);
    if (name != input->name()) prepared.graph->rename(input.get(), name);
  }
  const PlanSize size{batch, std::move(prepared.graph), std::move(prepared.kernels)};
  // What could not be loaded is not written either.
  const std::shared_ptr<Device>& device = executable.workspace()->device();
  const auto compile_again = [&] { compile(*size.graph, device, description_.compile_options(size)); };
  if (auto* keeper = device->extension<ArtifactKeeper>()) {
    artifacts_.merge(keeper->collect(compile_again));
  } else {
    compile_again();
  }
  sizes.insert(place, size);
}

// Sizes may make different things under one name.
std::string PlanBuilder::keep(const std::string& name, const Tensor& contents, const Graph& graph) {
  std::string kept = name;
  for (int64_t other = 2;; ++other) {
    if (kept == name || graph.find(kept) == nullptr) {
      const auto [known, added] = weights_.emplace(kept, contents);
      if (added || known->second.identical(contents)) return kept;
    }
    kept = fmt::format("{}.other{}", name, other);
  }
}

int64_t PlanBuilder::weight_bytes() const {
  int64_t bytes = 0;
  for (const auto& [name, contents] : weights_) bytes += static_cast<int64_t>(contents.bytes());
  return bytes;
}

void PlanBuilder::write(const std::filesystem::path& path) const {
  require(!description_.sizes.empty(), ErrorCode::invalid_argument, "{}: there is no size to write",
          description_.network);
  inputs_of(description_.sizes);
  outputs_of(description_.sizes);
  std::map<std::string, Tensor> kept;
  for (const auto& [name, contents] : weights_) kept.emplace(name, as_kept(contents));
  for (const auto& [name, bytes] : artifacts_)
    kept.emplace(std::string(kArtifactPrefix) + name, tensor_of(bytes));
  data::write_safetensors(path, kept,
                          {{kFormatKey, kFormat}, {kDescriptionKey, format_description(description_)}});
}

}  // namespace tessera::infer
