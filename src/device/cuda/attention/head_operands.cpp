#include "device/cuda/attention/head_operands.h"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include "tessera/device/common/refusal.h"

namespace tessera::cuda {
namespace {

using Operand = AttentionOperand;

struct Field {
  Operand operand;
  std::string_view name;
};
// Of heads, whose places differ.
constexpr Field kHeads[] = {{Operand::q, "q"},   {Operand::k, "k"},   {Operand::v, "v"},
                            {Operand::y, "y"},   {Operand::dy, "dy"}, {Operand::dq, "dq"},
                            {Operand::dk, "dk"}, {Operand::dv, "dv"}};

const PlacedOperand* find(const std::vector<PlacedOperand>& side, Operand operand) {
  const auto found = std::ranges::find(side, operand, &PlacedOperand::operand);
  return found == side.end() ? nullptr : &*found;
}

const PlacedOperand* find(const PlacedAttention& attention, Operand operand) {
  const PlacedOperand* input = find(attention.inputs, operand);
  return input != nullptr ? input : find(attention.outputs, operand);
}

bool is_of_queries(Operand operand) {
  return operand == Operand::q || operand == Operand::y || operand == Operand::dy || operand == Operand::dq;
}

// [batch, heads, rows, width]
Shape strides_of(const AttentionProblem& problem, Operand operand) {
  const auto own = problem.strides.find(operand);
  if (own != problem.strides.end()) return own->second;
  if (is_of_queries(operand))
    return row_major_strides({problem.batch, problem.heads, problem.queries, problem.width});
  return row_major_strides({problem.batch, problem.key_heads, problem.keys, problem.width});
}

}  // namespace

std::string print_places(const PlacedAttention& attention) {
  const AttentionProblem& problem = attention.problem;
  std::string text;
  const auto place = [&](std::string_view name, int64_t offset, const Shape& strides, int64_t sharing) {
    text += fmt::format("  static __device__ HeadPlaces {}() {{ return {{{}, {}, {}, {}, {}}}; }}\n", name,
                        offset, strides[0], strides[1], strides[2], sharing);
  };
  for (const Field& field : kHeads) {
    if (const PlacedOperand* placed = find(attention, field.operand)) {
      place(field.name, placed->offset, strides_of(problem, field.operand),
            is_of_queries(field.operand) ? 1 : problem.heads_per_key_head());
    }
  }
  if (problem.bias.has_value()) {
    const int64_t scores = problem.queries * problem.keys;
    place("bias", 0,
          {problem.bias->batch == 1 ? 0 : problem.bias->heads * scores, problem.bias->heads == 1 ? 0 : scores,
           problem.keys},
          1);
  }
  return text;
}

void add_pointers(PointerList& pointers, const PlacedAttention& attention) {
  const auto add = [&](Operand operand, std::string_view name) {
    if (const PlacedOperand* input = find(attention.inputs, operand)) pointers.input(name, input->place);
    if (const PlacedOperand* output = find(attention.outputs, operand)) pointers.output(name, output->place);
  };
  for (const Field& field : kHeads) add(field.operand, field.name);
  add(Operand::bias, "bias");
  add(Operand::key_lengths, "key_lengths");
  add(Operand::counter, "counter");
  add(Operand::log_sum, "log_sum");
}

void refuse_unless_by_tensor_cores(const AttentionProblem& problem, int64_t widest, const GpuTraits& gpu) {
  constexpr int kFirstArchitecture = 80;  // products of 16 x 8 x 16 bfloat16 numbers, copies ahead
  using backend::refuse_unless;
  refuse_unless(is_half(problem.type), "operands of other than 16 bits");
  refuse_unless(gpu.architecture >= kFirstArchitecture, "a GPU before compute capability 8.0");
  refuse_unless(problem.width == problem.value_width, "values of another width than keys");
  refuse_unless(problem.width > 0 && problem.width % 16 == 0 && problem.width <= widest,
                "a width of {}, where multiples of 16 up to {} are taken", problem.width, widest);
  refuse_unless(problem.batch * problem.heads * problem.queries * problem.keys > 0,
                "a tensor without elements");
  refuse_unless(!problem.gradient || problem.key_heads == problem.heads,
                "the gradient of {} heads of keys that {} of queries share", problem.key_heads,
                problem.heads);
  refuse_unless(!problem.bias_gradient, "the gradient of a bias");
}

void refuse_unless_whole(const PlacedAttention& attention) {
  for (const Operand operand : {Operand::bias, Operand::key_lengths, Operand::counter, Operand::log_sum}) {
    const PlacedOperand* placed = find(attention, operand);
    backend::refuse_unless(
        placed == nullptr || (placed->offset == 0 && !attention.problem.strides.contains(operand)),
        "a bias, lengths, a counter or sums that lie in another tensor");
  }
}

}  // namespace tessera::cuda
