#include "tessera/compile/reference_kernel.h"

#include <cstring>

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

}  // namespace

KernelCandidate reference_candidate() {
  return {.name = "reference", .fallback = true, .plan = [](const KernelRequest& request) {
            return KernelMaker([&node = request.node] { return std::make_unique<ReferenceKernel>(node); });
          }};
}

}  // namespace tessera
