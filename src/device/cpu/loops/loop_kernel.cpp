#include "device/cpu/loops/loop_kernel.h"

#include <memory>

#include "tessera/device/common/refusal.h"

#include "device/cpu/kernel_registry.h"

namespace tessera::cpu {
namespace {

class FunctionKernel : public Kernel {
 public:
  explicit FunctionKernel(LoopKernel kernel) : kernel_(std::move(kernel)) {}
  int64_t workspace_bytes() const override { return kernel_.workspace_bytes; }
  bool may_overwrite(size_t output, size_t input) const override {
    return output == 0 && kernel_.overwrites == input;
  }
  void run(const KernelArguments& arguments) override { kernel_.run(arguments); }

 private:
  LoopKernel kernel_;
};

}  // namespace

LoopRegistration::LoopRegistration(const std::string& key, std::function<LoopKernel(const Node& node)> make) {
  const KernelCandidate candidate = backend::candidate_of<FunctionKernel>(
      "loops." + key, [make = std::move(make)](const KernelRequest& request) {
        for (const Value* input : request.node.inputs())
          backend::refuse_unless(!is_packed(input->data_type()), "loops move no parts of bytes");
        return make(request.node);
      });
  CpuKernelRegistration(
      {.key = key, .candidates = [candidate](const Node&) { return std::vector{candidate}; }});
}

}  // namespace tessera::cpu
