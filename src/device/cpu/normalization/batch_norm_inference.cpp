// Batch normalization by given statistics with the relu after it: one pass over memory. The same bits as the
// result of the training kernel that made the statistics.
#include "tessera/device/common/batch_norm_patterns.h"
#include "tessera/device/common/refusal.h"
#include "tessera/device/common/roles.h"

#include "device/cpu/kernel_registry.h"
#include "device/cpu/normalization/batch_norm.h"
#include "device/cpu/runtime/parallel.h"

namespace tessera::cpu {
namespace {

struct Parts {
  size_t x, scale, bias, mean, variance;  // inputs
  double epsilon = 0;
};

// Refuses a body that is not: normalize, relu.
Parts parse(const Node& node) {
  const Node& main = backend::maker_of_role(node, "y");
  backend::check_batch_norm_types(*main.input(0), *main.input(1));
  const Value* result = node.body()->outputs().at(0).value;
  const Node* relu = result->producer();
  backend::refuse_unless(node.body()->nodes().size() == 2 && relu != nullptr &&
                             relu->operator_name() == "relu" && relu->input(0) == main.output(),
                         "the body is not a batch normalization and a relu");
  return {.x = backend::input_index(node, main.input(0)),
          .scale = backend::input_index(node, main.input(1)),
          .bias = backend::input_index(node, main.input(2)),
          .mean = backend::input_index(node, main.input(3)),
          .variance = backend::input_index(node, main.input(4)),
          .epsilon = main.attributes().real("epsilon")};
}

class BatchNormInference : public Kernel {
 public:
  BatchNormInference(const Node& node, const Parts& parts)
      : parts_(parts), rows_(node.input(parts_.x)->type()) {
    factor_ = workspace_.book<float>(rows_.channels);
  }

  int64_t workspace_bytes() const override { return workspace_.bytes(); }

  bool may_overwrite(size_t, size_t input) const override { return input == parts_.x; }

  void run(const KernelArguments& arguments) override {
    const auto floats = [&](size_t input) { return static_cast<const float*>(arguments.inputs[input]); };
    float* factor = factor_.in(arguments.workspace);
    for (int64_t c = 0; c < rows_.channels; ++c) {
      factor[c] = normalizing_factor(floats(parts_.scale)[c], floats(parts_.variance)[c], parts_.epsilon);
    }
    const ChannelAffine affine{floats(parts_.mean), factor, floats(parts_.bias)};
    const void* x = arguments.inputs[parts_.x];
    void* y = arguments.outputs[0];
    const Blocks& blocks = rows_.blocks;
    for_each_block(blocks.parts, blocks.count(), Order::forwards, [&](int64_t, int64_t block) {
      run_pass(NormalizePass{.rows = rows_.block(block),
                             .x = x,
                             .y = y,
                             .affine = affine,
                             .relu = true,
                             .stream = rows_.stream() && y != x});
    });
  }

 private:
  Parts parts_;
  ActivationRows rows_;
  WorkspaceLayout workspace_;
  WorkspaceArray<float> factor_;
};

std::vector<KernelCandidate> candidates(const Node&) {
  return {checked_candidate("loops.batch_norm_inference", [](const KernelRequest& request) -> KernelMaker {
    return [&node = request.node, parts = parse(request.node)] {
      return std::make_unique<BatchNormInference>(node, parts);
    };
  })};
}

const CpuKernelRegistration kFused({"fused:batch_norm_inference", candidates});

}  // namespace
}  // namespace tessera::cpu
