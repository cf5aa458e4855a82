#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tessera/base/clock.h"
#include "tessera/base/error.h"
#include "tessera/infer/engine.h"

#include "cli/runnable_file.h"

namespace tessera::cli {
namespace {

using program::Item;

std::vector<program::Declaration> declarations_of(const std::vector<infer::PlanValue>& values) {
  std::vector<program::Declaration> result;
  for (const infer::PlanValue& value : values)
    result.push_back({value.name, to_string(value.type), value.type});
  return result;
}

std::shared_ptr<Device> open_if_named(const std::string& device) {
  return device.empty() ? nullptr : Device::open(device);
}

class PlanFile : public RunnableFile {
 public:
  PlanFile(const std::string& path, const std::string& device)
      : engine_(path, open_if_named(device)), context_(engine_.context()) {
    loading_.end = Clock::now();
  }

  std::vector<program::Declaration> inputs() const override { return declarations_of(engine_.inputs()); }
  std::vector<program::Declaration> outputs() const override { return declarations_of(engine_.outputs()); }

  std::map<std::string, Item> run(const std::map<std::string, Item>& inputs) override {
    std::map<std::string, Tensor> tensors;
    for (const auto& [name, item] : inputs) {
      require(item.tensor() != nullptr, ErrorCode::invalid_argument,
              "the input '{}' is to be a tensor, it is {}", name, to_string(item));
      tensors.emplace(name, *item.tensor());
    }
    std::map<std::string, Item> outputs;
    for (auto& [name, tensor] : context_->run(tensors)) outputs.emplace(name, std::move(tensor));
    return outputs;
  }

  void explain() const override {
    const infer::PlanDescription& plan = engine_.plan().description();
    std::vector<int64_t> batches;
    for (const infer::PlanSize& size : plan.sizes) batches.push_back(size.batch);
    fmt::print("plan of '{}' for {}, {}: batch {}, {}; loaded in {:.2f} s, with its device\n", plan.network,
               plan.device.name, plan.device.model, fmt::join(batches, ", "), to_string(plan.precision),
               loading_.seconds());
  }

 private:
  TimeSpan loading_ = {Clock::now(), {}};
  infer::Engine engine_;
  std::unique_ptr<infer::Context> context_;
};

const RunnableFormatRegistration kPlan(
    {.name = ".plan", .open = [](const std::string& path, const RunnableOptions& options) {
       require(options.precision.empty(), ErrorCode::invalid_argument,
               "'{}' is a plan, whose precision was chosen when it was built", path);
       return std::make_unique<PlanFile>(path, options.device);
     }});

}  // namespace
}  // namespace tessera::cli
