#include "tessera/infer/engine.h"

#include <algorithm>
#include <utility>

#include "tessera/base/error.h"
#include "tessera/base/text.h"

#include "infer/batch_rows.h"

namespace tessera::infer {
namespace {

// The type of a value of so many rows.
TensorType with_rows(const TensorType& type, int64_t rows) {
  return {type.data_type, substitute(type.shape, {{"batch", rows}})};
}

bool has_rows(const PlanValue& value) {
  return !value.type.is_static();
}

}  // namespace

Engine::Engine(const std::filesystem::path& plan, std::shared_ptr<Device> device)
    : plan_(std::make_shared<const Plan>(Plan::open(plan))),
      device_(std::move(device)),
      making_(std::make_shared<std::mutex>()) {
  if (device_ == nullptr) device_ = Device::open(plan_->description().device.name);
  plan_->check(device_->description());
  weights_ = std::make_shared<Variables>(device_);
  for (const std::string& name : plan_->weight_names()) weights_->set(name, plan_->weight(name));
}

std::unique_ptr<Context> Engine::context() const {
  const std::lock_guard lock(*making_);
  return std::unique_ptr<Context>(new Context(plan_, device_, weights_));
}

Context::Context(std::shared_ptr<const Plan> plan, const std::shared_ptr<Device>& device,
                 const std::shared_ptr<Variables>& weights)
    : plan_(std::move(plan)) {
  const auto workspace = std::make_shared<Workspace>(device);
  const std::vector<PlanSize>& sizes = plan_->description().sizes;
  // The largest first, so that the workspace grows once.
  for (auto size = sizes.rbegin(); size != sizes.rend(); ++size) {
    std::unique_ptr<Executable>& executable = executables_[size->batch];
    executable = plan_->compile(*size, device, workspace);
    executable->bind(weights);
  }
}

std::map<std::string, Tensor> Context::run(const std::map<std::string, Tensor>& inputs) {
  check_names(inputs);
  const PlanDescription& description = plan_->description();
  if (description.sizes.size() == 1) return executables_.begin()->second->run(inputs);
  const int64_t rows = rows_of(inputs);
  std::map<std::string, Tensor> outputs;
  for (int64_t first = 0; first < rows;) {
    const PlanSize& size = description.size_for(rows - first);
    const int64_t count = std::min(size.batch, rows - first);
    std::map<std::string, Tensor> part = inputs;
    for (const PlanValue& input : plan_->inputs()) {
      if (has_rows(input)) part[input.name] = take_rows(inputs.at(input.name), first, count, size.batch);
    }
    std::map<std::string, Tensor> made = at(size).run(part);
    if (count == rows && count == size.batch) return made;
    for (const PlanValue& output : plan_->outputs()) {
      const TensorType type = with_rows(output.type, rows);
      Tensor& whole = outputs[output.name];
      if (!whole.defined()) whole = Tensor(type.data_type, type.static_shape());
      if (has_rows(output)) {
        put_rows(made.at(output.name), whole, first, count);
      } else {
        whole = made.at(output.name);
      }
    }
    first += count;
  }
  return outputs;
}

void Context::check_names(const std::map<std::string, Tensor>& inputs) const {
  std::vector<std::string> names;
  for (const PlanValue& input : plan_->inputs()) {
    names.push_back(input.name);
    require(inputs.contains(input.name), ErrorCode::invalid_argument, "the input '{}' ({}) is missing",
            input.name, to_string(input.type));
  }
  for (const auto& [name, tensor] : inputs) {
    const bool known = std::find(names.begin(), names.end(), name) != names.end();
    require(known, ErrorCode::invalid_argument, "there is no input '{}'{}", name, did_you_mean(name, names));
  }
}

int64_t Context::rows_of(const std::map<std::string, Tensor>& inputs) const {
  const PlanValue* said_by = nullptr;
  int64_t rows = 0;
  for (const PlanValue& input : plan_->inputs()) {
    const Tensor& given = inputs.at(input.name);
    if (has_rows(input) && said_by == nullptr && !given.shape().empty()) {
      said_by = &input;
      rows = given.shape().front();
    }
    const TensorType wanted = with_rows(input.type, rows);
    require(given.data_type() == wanted.data_type && given.shape() == wanted.static_shape(),
            ErrorCode::invalid_argument, "the input '{}' is to be {}{}, it is {}{}", input.name,
            to_string(input.type),
            said_by == nullptr || said_by == &input
                ? ""
                : fmt::format(" for the {} rows of '{}'", rows, said_by->name),
            to_string(given.data_type()), to_string(given.shape()));
  }
  require(rows > 0, ErrorCode::invalid_argument, "there are no rows to run");
  return rows;
}

}  // namespace tessera::infer
