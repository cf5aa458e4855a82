#include "compile/communication_kernel.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <string_view>

#include "tessera/base/error.h"
#include "tessera/compile/communicator.h"
#include "tessera/compile/device_collectives.h"
#include "tessera/compile/queue.h"
#include "tessera/graph/operator.h"
#include "tessera/passes/readiness.h"

namespace tessera {
namespace {

using Run = void (*)(const Node& node, Communicator& communicator, std::span<const void* const> inputs,
                     std::span<void* const> outputs);

int64_t bytes_of(const Value& value) {
  return value.type().bytes();
}

void all_reduce(const Node& node, Communicator& communicator, std::span<const void* const> inputs,
                std::span<void* const> outputs) {
  std::map<DataType, std::vector<ReducedPart>> parts;
  for (size_t i = 0; i < inputs.size(); ++i)
    parts[node.input(i)->data_type()].push_back(
        {inputs[i], outputs[i], node.input(i)->type().element_count()});
  const Reduction reduction = parse_reduction(node.attributes().text("reduction"));
  for (const auto& [type, of_type] : parts) communicator.all_reduce(of_type, type, reduction);
}

void reduce_scatter(const Node& node, Communicator& communicator, std::span<const void* const> inputs,
                    std::span<void* const> outputs) {
  const Reduction reduction = parse_reduction(node.attributes().text("reduction"));
  for (size_t i = 0; i < inputs.size(); ++i)
    communicator.reduce_scatter(inputs[i], outputs[i], node.output(i)->type().element_count(),
                                node.input(i)->data_type(), reduction);
}

void all_gather(const Node& node, Communicator& communicator, std::span<const void* const> inputs,
                std::span<void* const> outputs) {
  for (size_t i = 0; i < inputs.size(); ++i)
    communicator.all_gather(inputs[i], outputs[i], bytes_of(*node.input(i)));
}

void broadcast(const Node& node, Communicator& communicator, std::span<const void* const> inputs,
               std::span<void* const> outputs) {
  communicator.broadcast(inputs[0], outputs[0], bytes_of(*node.input(0)), node.attributes().integer("root"));
}

void reduce(const Node& node, Communicator& communicator, std::span<const void* const> inputs,
            std::span<void* const> outputs) {
  const ReducedPart part{inputs[0], outputs[0], node.input(0)->type().element_count()};
  communicator.all_reduce({&part, 1}, node.input(0)->data_type(), Reduction::sum);
  if (communicator.rank() != node.attributes().integer("root"))
    std::memset(outputs[0], 0, static_cast<size_t>(bytes_of(*node.output())));
}

struct Collective {
  std::string_view name;
  Run run;
};

constexpr Collective kCollectives[] = {{"all_reduce", all_reduce},
                                       {"reduce_scatter", reduce_scatter},
                                       {"all_gather", all_gather},
                                       {"broadcast", broadcast},
                                       {"reduce", reduce}};

const Collective* find_collective(const Node& node) {
  for (const Collective& collective : kCollectives) {
    if (collective.name == node.operator_name()) return &collective;
  }
  return nullptr;
}

class CommunicationKernel : public Kernel {
 public:
  CommunicationKernel(const Node& node, const Collective& collective,
                      std::shared_ptr<Communicator> communicator, bool host_accessible)
      : node_(node),
        collective_(collective),
        communicator_(std::move(communicator)),
        host_accessible_(host_accessible) {}

  bool may_overwrite(size_t output, size_t input) const override {
    return node_.schema().traits.in_place && output == input;
  }
  bool recordable() const override { return false; }

  void run(const KernelArguments& arguments) override {
    if (host_accessible_) {
      collective_.run(node_, *communicator_, arguments.inputs, arguments.outputs);
    } else {
      run_through_host(arguments);
    }
  }

 private:
  void run_through_host(const KernelArguments& arguments) {
    std::vector<Tensor> memory;
    std::vector<const void*> inputs;
    std::vector<void*> outputs;
    for (size_t i = 0; i < node_.inputs().size(); ++i) {
      const TensorType& type = node_.input(i)->type();
      memory.emplace_back(type.data_type, type.static_shape());
      inputs.push_back(memory.back().raw());
      arguments.queue.copy_to_host(memory.back().raw(), arguments.inputs[i], type.bytes());
    }
    for (const auto& output : node_.outputs()) {
      memory.emplace_back(output->data_type(), output->type().static_shape());
      outputs.push_back(memory.back().raw());
    }
    collective_.run(node_, *communicator_, inputs, outputs);
    for (size_t i = 0; i < outputs.size(); ++i)
      arguments.queue.copy_from_host(arguments.outputs[i], outputs[i], bytes_of(*node_.output(i)));
  }

  const Node& node_;
  const Collective& collective_;
  const std::shared_ptr<Communicator> communicator_;
  const bool host_accessible_;
};

// Nobody to communicate with.
class OneRankKernel : public Kernel {
 public:
  explicit OneRankKernel(const Node& node) : node_(node) {}

  bool may_overwrite(size_t output, size_t input) const override { return output == input; }
  void run(const KernelArguments& arguments) override {
    for (size_t i = 0; i < arguments.outputs.size(); ++i) {
      if (arguments.outputs[i] != arguments.inputs[i])
        arguments.queue.copy(arguments.outputs[i], arguments.inputs[i], bytes_of(*node_.output(i)));
    }
  }

 private:
  const Node& node_;
};

std::variant<Refusal, KernelMaker> plan(const KernelRequest& request, const Device& device) {
  const Node& node = request.node;
  const int64_t ranks = node.attributes().integer("ranks");
  if (ranks == 1) return KernelMaker([&node] { return std::make_unique<OneRankKernel>(node); });
  const Collective* collective = find_collective(node);
  if (collective == nullptr) return Refusal{"no communicator does this"};
  const std::string& group = node.attributes().text("group");
  if (request.communicator == nullptr && device.executes())
    return Refusal{
        fmt::format("the group '{}' of {} ranks has no communicator: CompileOptions::communicators "
                    "gives one",
                    group, ranks)};
  require(request.communicator == nullptr || ranks == request.communicator->size(),
          ErrorCode::invalid_argument, "'{}' ({}) is of {} ranks, the communicator of its group '{}' has {}",
          node.name(), node.operator_name(), ranks, group,
          request.communicator == nullptr ? 0 : request.communicator->size());
  return KernelMaker(
      [&node, collective, communicator = request.communicator, host_accessible = device.host_accessible()] {
        return std::make_unique<CommunicationKernel>(node, *collective, communicator, host_accessible);
      });
}

}  // namespace

std::shared_ptr<Communicator> group_of(const Node& node, const CompileOptions& options) {
  const auto known = options.communicators.find(node.attributes().text("group"));
  return known == options.communicators.end() ? nullptr : known->second;
}

void connect_groups(const Graph& graph, Device& device, const CompileOptions& options) {
  auto* const collectives = device.extension<DeviceCollectives>();
  if (collectives == nullptr) return;
  std::map<std::string, std::shared_ptr<Communicator>> groups;  // by name: in one order on all ranks
  for (const auto& node : graph.nodes()) {
    if (!is_collective(*node)) continue;
    if (auto group = group_of(*node, options); group != nullptr)
      groups.emplace(node->attributes().text("group"), std::move(group));
  }
  for (const auto& [name, group] : groups) collectives->connect(group, options.most_collective_blocks);
}

std::function<bool(const Node& node)> lane_of(const Device& device, const CompileOptions& options) {
  const auto* const collectives = device.extension<DeviceCollectives>();
  if (collectives == nullptr) return {};
  return [&device, &options, collectives](const Node& node) {
    if (!is_collective(node)) return false;
    const std::shared_ptr<Communicator> group = group_of(node, options);
    return (group != nullptr || !device.executes()) && collectives->refusal(node, group.get()).empty();
  };
}

PassTarget pass_target(const Graph& graph, const Device& device, const CompileOptions& options) {
  PassTarget target = device.pass_target(options.passes);
  const auto takes_lane = lane_of(device, options);
  const bool goes_on_beside = takes_lane && std::any_of(graph.nodes().begin(), graph.nodes().end(),
                                                        [&](const auto& node) { return takes_lane(*node); });
  if (!goes_on_beside) target.bucket_bytes = 0;
  return target;
}

std::vector<std::shared_ptr<Communicator>> groups_of(const std::unordered_set<const Node*>& nodes,
                                                     const CompileOptions& options) {
  std::set<std::shared_ptr<Communicator>> groups;
  for (const Node* node : nodes) {
    if (auto group = group_of(*node, options); group != nullptr) groups.insert(std::move(group));
  }
  return {groups.begin(), groups.end()};
}

std::vector<KernelCandidate> communication_candidates(const Device& device) {
  std::vector<KernelCandidate> candidates;
  if (const auto* const collectives = device.extension<DeviceCollectives>())
    candidates.push_back(collectives->collective_candidate());
  candidates.push_back({.name = "communicator",
                        .plan = [&device](const KernelRequest& request) { return plan(request, device); }});
  return candidates;
}

}  // namespace tessera
