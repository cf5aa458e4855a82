// Gradient of ai.onnx.preview.training.
#include "tessera/passes/differentiate.h"

#include "onnx/lowering.h"

namespace tessera::onnx {
namespace {

// Of the sum of a value's elements, to the first operands; the others only say what stays as it is.
void lower_gradient(LowerCall& call) {
  const std::vector<std::string> names = call.texts("xs");
  call.require(names.size() == call.result_count() && names.size() <= call.operand_count(),
               "it is to have an operand and a result for each of xs");
  Value* y = call.made_here(call.text("y", ""));
  require(y != nullptr, ErrorCode::unsupported, "{}: '{}' is made of contents, and has no gradient here",
          call.instruction().place(), call.text("y", ""));
  std::vector<Value*> xs;
  for (size_t i = 0; i < names.size(); ++i) xs.push_back(call.operand(i));
  const std::vector<Value*> gradients = differentiate(call.graph(), ops::reduce_sum(y), xs);
  for (size_t i = 0; i < xs.size(); ++i) {
    Value* gradient = gradients[i];
    call.result(i, gradient != nullptr ? gradient : broadcast(ops::constant_like(xs[i], 0), shape_of(xs[i])));
  }
}

const RuleRegistrations kRegistration{
    {.name = "Gradient", .domain = "ai.onnx.preview.training", .lower = lower_gradient, .random = true}};

}  // namespace
}  // namespace tessera::onnx
