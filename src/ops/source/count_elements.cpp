#include "tessera/graph/operator.h"

namespace tessera::ops {
namespace {

const OperatorRegistration kRegistration({
    .name = "count_elements",
    .documentation = "The number of elements of `shape` as a scalar of `type`. It stands for a number that "
                     "is known only once the graph is specialized, such as the batch size in the gradient "
                     "of a mean, and folds to a constant then.",
    .operator_class = OperatorClass::source,
    .attributes = {{"shape", AttributeKind::shape, {}, "The extents to multiply."},
                   {"type", AttributeKind::data_type, DataType::fp32, "Type of the result."}},
    .outputs = {"y"},
    .infer = [](const InferenceCall& call) -> std::vector<TensorType> {
      const DataType type = call.attributes.data_type("type");
      call.require(type != DataType::boolean, "attribute 'type' may not be bool");
      return {{type, {}}};
    },
    .reference =
        [](const ReferenceCall& call) {
          call.outputs[0]->set(
              0, static_cast<double>(element_count(to_static(call.attributes().shape("shape")))));
        },
    .examples = {{.attributes = {{"shape", SymbolicShape{3, 5}}}},
                 {.attributes = {{"shape", SymbolicShape{}}}}},
});

}  // namespace
}  // namespace tessera::ops
