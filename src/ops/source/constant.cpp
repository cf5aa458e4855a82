#include "tessera/graph/operator.h"

namespace tessera::ops {
namespace {

const OperatorRegistration kRegistration{{
    .name = "constant",
    .documentation = "A tensor that is part of the graph.",
    .operator_class = OperatorClass::source,
    .inputs = {},
    .attributes = {{.name = "value",
                    .kind = AttributeKind::tensor,
                    .default_value = {},
                    .documentation = "the tensor"}},
    .outputs = {"y"},
    .infer = [](const InferenceCall& call) -> std::vector<TensorType> {
      const Tensor& value = call.attributes.tensor("value");
      return {{value.data_type(), to_symbolic(value.shape())}};
    },
    .gradient = {},
    .flops = {},
    .reference =
        [](const ReferenceCall& call) { *call.outputs[0] = call.attributes().tensor("value").clone(); },
    .examples = {{.inputs = {}, .attributes = {{"value", Tensor::scalar(DataType::fp32, 0.5)}}},
                 {.inputs = {},
                  .attributes = {{"value", Tensor::from<int64_t>({3}, {1, -2, int64_t{1} << 60})}}}},
    .scalar = {},
    .decompose = {},
}};

}  // namespace
}  // namespace tessera::ops
