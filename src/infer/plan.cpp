#include "tessera/infer/plan.h"

#include <algorithm>
#include <mutex>

#include "tessera/base/error.h"
#include "tessera/compile/kernel_artifacts.h"

#include "infer/kept_type.h"
#include "infer/plan_text.h"

namespace tessera::infer {
namespace {

std::string format_or_none(const std::map<std::string, std::string>& metadata, const char* key) {
  const auto found = metadata.find(key);
  return found == metadata.end() ? "" : found->second;
}

// What differs, as "onednn '3.2.0', this is '3.3.0'".
void compare(const std::string& what, const std::string& made_for, const std::string& present,
             std::vector<std::string>& differences) {
  if (made_for == present) return;
  differences.push_back(fmt::format("{} '{}', this is '{}'", what, made_for, present));
}

TensorType type_in_file(const data::SafetensorsEntry& entry) {
  return {entry.type, SymbolicShape(entry.shape.begin(), entry.shape.end())};
}

}  // namespace

struct Plan::Offer {
  std::once_flag once;
  std::shared_ptr<void> offered;
};

const PlanSize& PlanDescription::size_for(int64_t rows) const {
  const auto found =
      std::find_if(sizes.begin(), sizes.end(), [&](const PlanSize& size) { return size.batch >= rows; });
  return found == sizes.end() ? sizes.back() : *found;
}

CompileOptions PlanDescription::compile_options(const PlanSize& size) const {
  CompileOptions options;
  options.passes.precision = precision;
  options.passes.deterministic = deterministic;
  options.passes.frozen = true;
  options.kernels = size.kernels;
  return options;
}

Plan Plan::open(const std::filesystem::path& path) {
  return {data::SafetensorsFile::open(path), path.string()};
}

Plan Plan::parse(std::span<const std::byte> bytes, std::string name) {
  data::SafetensorsFile file = data::SafetensorsFile::parse(bytes, name);
  return {std::move(file), std::move(name)};
}

Plan::Plan(data::SafetensorsFile file, std::string name)
    : name_(std::move(name)), file_(std::move(file)), offer_(std::make_shared<Offer>()) {
  const std::string format = format_or_none(file_.metadata(), kFormatKey);
  require(!format.empty(), ErrorCode::invalid_file, "{}: it is no plan file", name_);
  require(format == kFormat, ErrorCode::unsupported,
          "{}: a plan file of format {}, this program reads format {}: build it again", name_, format,
          kFormat);
  try {
    description_ = parse_description(format_or_none(file_.metadata(), kDescriptionKey));
    inputs_ = inputs_of(description_.sizes);
    outputs_ = outputs_of(description_.sizes);
    check_weights();
  } catch (const Error& error) {
    fail(ErrorCode::invalid_file, "{}: {}", name_, error.what());
  }
}

// Every variable of every graph is there, in its type.
void Plan::check_weights() {
  for (const PlanSize& size : description_.sizes) {
    for (const auto& input : size.graph->inputs()) {
      if (input->role() == InputRole::input) continue;
      const auto entry = file_.entries().find(input->name());
      require(entry != file_.entries().end(), ErrorCode::invalid_file, "the contents of '{}' are missing",
              input->name());
      require(type_in_file(entry->second) == kept_type(input->type()), ErrorCode::invalid_file,
              "'{}' is {} in a graph and {} among the contents", input->name(), to_string(input->type()),
              to_string(type_in_file(entry->second)));
      const auto [known, added] = weights_.emplace(input->name(), input->type());
      require(added || known->second == input->type(), ErrorCode::invalid_file,
              "'{}' is {} in a graph and {} in another", input->name(), to_string(known->second),
              to_string(input->type()));
    }
  }
}

void Plan::check(const DeviceDescription& device) const {
  std::vector<std::string> differences;
  const PlanDevice& made_for = description_.device;
  compare("Tessera", description_.program, TESSERA_VERSION, differences);
  compare("device", made_for.name, device.name, differences);
  if (made_for.name == device.name) {
    compare("model", made_for.model, device.model, differences);
    for (const auto& [library, version] : made_for.versions) {
      const auto present = device.versions.find(library);
      compare(library, version, present == device.versions.end() ? "none" : present->second, differences);
    }
  }
  require(differences.empty(), ErrorCode::unsupported, "{} was made for {}: build it again", name_,
          fmt::join(differences, "; for "));
}

std::vector<std::string> Plan::weight_names() const {
  std::vector<std::string> names;
  for (const auto& [name, type] : weights_) names.push_back(name);
  return names;
}

Tensor Plan::weight(const std::string& name) const {
  const Tensor kept = file_.read(name);
  const TensorType& type = weights_.at(name);
  return Tensor::share(type.data_type, type.static_shape(), kept.owner());
}

std::map<std::string, std::string> Plan::artifacts() const {
  KernelArtifacts artifacts;
  for (const auto& [name, entry] : file_.entries()) {
    if (!name.starts_with(kArtifactPrefix)) continue;
    const Tensor bytes = file_.read(name);
    artifacts[name.substr(kArtifactPrefix.size())].assign(static_cast<const char*>(bytes.raw()),
                                                          bytes.bytes());
  }
  return artifacts;
}

std::unique_ptr<Executable> Plan::compile(const PlanSize& size, const std::shared_ptr<Device>& device,
                                          std::shared_ptr<Workspace> workspace) const {
  if (auto* keeper = device->extension<ArtifactKeeper>())
    std::call_once(offer_->once, [&] { offer_->offered = keeper->offer(artifacts()); });
  CompileOptions options = description_.compile_options(size);
  options.workspace = std::move(workspace);
  return tessera::compile(*size.graph, device, options);
}

}  // namespace tessera::infer
