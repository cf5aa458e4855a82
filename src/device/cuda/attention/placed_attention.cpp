#include "device/cuda/attention/placed_attention.h"

#include <string_view>

#include "tessera/device/common/attention_patterns.h"
#include "tessera/device/common/moved_view.h"
#include "tessera/device/common/refusal.h"
#include "tessera/device/common/roles.h"
#include "tessera/graph/operator.h"

namespace tessera::cuda {
namespace {

using backend::refuse_unless;
using Operand = AttentionOperand;

struct Role {
  Operand operand;
  std::string_view name;
};

// The roles of the inputs and outputs; the counter, the bias and its gradient, and the lengths may be
// missing.
struct Signature {
  std::vector<Role> inputs;
  std::vector<Role> outputs;
};
const Signature& signature_of(bool gradient) {
  static const Signature forward{{{Operand::q, "q"},
                                  {Operand::k, "k"},
                                  {Operand::v, "v"},
                                  {Operand::counter, "counter"},
                                  {Operand::bias, "bias"},
                                  {Operand::key_lengths, "key_lengths"}},
                                 {{Operand::y, "y"}, {Operand::log_sum, "log_sum"}}};
  static const Signature backward{{{Operand::dy, "output_gradient"},
                                   {Operand::q, "q"},
                                   {Operand::k, "k"},
                                   {Operand::v, "v"},
                                   {Operand::y, "y"},
                                   {Operand::log_sum, "log_sum"},
                                   {Operand::counter, "counter"},
                                   {Operand::bias, "bias"},
                                   {Operand::key_lengths, "key_lengths"}},
                                  {{Operand::dq, "q_gradient"},
                                   {Operand::dk, "k_gradient"},
                                   {Operand::dv, "v_gradient"},
                                   {Operand::dbias, "bias_gradient"}}};
  return gradient ? backward : forward;
}

}  // namespace

AttentionProblem attention_problem_of(const Node& attention) {
  AttentionProblem problem;
  problem.gradient = backend::is_attention_gradient(attention);
  const size_t first = problem.gradient ? 1 : 0;
  const Shape q = attention.input(first)->type().static_shape();
  const Shape v = attention.input(first + 2)->type().static_shape();  // with the heads of k
  problem.type = attention.input(first)->data_type();
  problem.batch = q[0];
  problem.heads = q[1];
  problem.key_heads = v[1];
  problem.queries = q[2];
  problem.keys = v[2];
  problem.width = q[3];
  problem.value_width = v[3];
  problem.scale = attention.attributes().real("scale");
  problem.causal = attention.attributes().boolean("causal");
  if (attention.attributes().contains("rate")) {
    problem.dropout = {.rate = attention.attributes().real("rate"),
                       .stream = attention.attributes().integer("stream")};
  }
  if (const Value* bias = backend::bias_of_attention(attention)) {
    const Shape shape = bias->type().static_shape();
    problem.bias = {.batch = shape[0], .heads = shape[1]};
  }
  problem.key_lengths = backend::key_lengths_of_attention(attention) != nullptr;
  return problem;
}

AttentionProblem attention_problem_in(const Node& node) {
  const Signature& signature = signature_of(backend::has_role(node, "output_gradient"));
  AttentionProblem problem =
      attention_problem_of(backend::maker_of_role(node, signature.outputs.front().name));
  problem.bias_gradient = backend::has_role(node, "bias_gradient");
  return problem;
}

PlacedAttention read_attention(const KernelRequest& request) {
  const Node& node = request.node;
  const Signature& signature = signature_of(backend::has_role(node, "output_gradient"));
  PlacedAttention found{.problem = attention_problem_in(node), .inputs = {}, .outputs = {}};
  found.problem.deterministic = request.deterministic;
  const auto placed = [&](const Role& role, const backend::PlacedView& where) {
    const DataType type = backend::in_role(node, role.name).data_type();
    const Shape& strides = where.view.memory.strides;
    if (strides != row_major_strides(where.view.shape)) {
      refuse_unless(backend::has_aligned_rows(where.view, type, backend::kAttentionRowAlignment),
                    "the rows of '{}' begin at no multiples of {} bytes", role.name,
                    backend::kAttentionRowAlignment);
      found.problem.strides[role.operand] = strides;
    }
    return PlacedOperand{
        .operand = role.operand, .place = where.place, .offset = where.view.memory.offset, .type = type};
  };
  for (const Role& role : signature.inputs) {
    if (backend::has_role(node, role.name))
      found.inputs.push_back(placed(role, backend::view_in_input(node, role.name)));
  }
  for (const Role& role : signature.outputs) {
    if (backend::has_role(node, role.name))
      found.outputs.push_back(placed(role, backend::view_in_output(node, role.name)));
  }
  return found;
}

}  // namespace tessera::cuda
