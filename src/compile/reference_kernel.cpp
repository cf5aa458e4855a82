#include "tessera/compile/reference_kernel.h"

#include <cstring>
#include <mutex>
#include <set>

#include "tessera/base/log.h"
#include "tessera/compile/queue.h"
#include "tessera/graph/operator.h"

namespace tessera {
namespace {

class ReferenceKernel : public Kernel {
 public:
  explicit ReferenceKernel(const Node& node) : node_(node) {}

  void run(const KernelArguments& arguments) override {
    std::vector<Tensor> inputs;
    for (size_t i = 0; i < node_.inputs().size(); ++i) {
      const TensorType& type = node_.input(i)->type();
      inputs.push_back(
          Tensor::view(type.data_type, type.static_shape(), const_cast<void*>(arguments.inputs[i])));
    }
    std::vector<const Tensor*> pointers;
    for (const Tensor& input : inputs) pointers.push_back(&input);
    const std::vector<Tensor> outputs = run_reference(node_, pointers);
    for (size_t i = 0; i < outputs.size(); ++i) {
      std::memcpy(arguments.outputs[i], outputs[i].raw(), outputs[i].bytes());
    }
  }

 private:
  const Node& node_;
};

class HostReferenceKernel : public Kernel {
 public:
  explicit HostReferenceKernel(const Node& node) : node_(node) {}

  bool recordable() const override { return false; }

  void run(const KernelArguments& arguments) override {
    std::vector<Tensor> inputs;
    std::vector<const Tensor*> pointers;
    inputs.reserve(node_.inputs().size());
    for (size_t i = 0; i < node_.inputs().size(); ++i) {
      const TensorType& type = node_.input(i)->type();
      const Tensor& input = inputs.emplace_back(type.data_type, type.static_shape());
      arguments.queue.copy_to_host(inputs.back().raw(), arguments.inputs[i], type.bytes());
      pointers.push_back(&input);
    }
    const std::vector<Tensor> outputs = run_reference(node_, pointers);
    for (size_t i = 0; i < outputs.size(); ++i) {
      arguments.queue.copy_from_host(arguments.outputs[i], outputs[i].raw(),
                                     static_cast<int64_t>(outputs[i].bytes()));
    }
  }

 private:
  const Node& node_;
};

void warn_once(const Node& node) {
  static std::mutex mutex;
  static std::set<std::string> warned;
  const std::string& name = node.operator_name();
  const std::lock_guard lock(mutex);
  if (warned.insert(name).second)
    log_warning("the device has no kernel for '{}' ({}): the host computes it, with copies there and back",
                node.name(), name);
}

}  // namespace

KernelCandidate host_reference_candidate() {
  return {
      .name = std::string(kHostReferenceKernel), .fallback = true, .plan = [](const KernelRequest& request) {
        return KernelMaker([&node = request.node] {
          warn_once(node);
          return std::make_unique<HostReferenceKernel>(node);
        });
      }};
}

KernelCandidate reference_candidate() {
  return {.name = "reference", .fallback = true, .plan = [](const KernelRequest& request) {
            return KernelMaker([&node = request.node] { return std::make_unique<ReferenceKernel>(node); });
          }};
}

}  // namespace tessera
