// Collectives of one rank.
#include "kernel_fuzz/problem_maker.h"

namespace tessera::testing {
namespace {

ops::RankGroup alone() {
  return {};
}

Value* number_input(ProblemMaker& maker, TypeSet types) {
  return maker.input(maker.type_of(types), maker.shape(0, 4), -9, 9);
}

std::vector<Value*> number_inputs(ProblemMaker& maker, DataType type, int64_t least_rank) {
  std::vector<Value*> inputs;
  for (int64_t count = maker.draw().between(1, 4); count > 0; --count)
    inputs.push_back(maker.input(type, maker.shape(least_rank, 3), -9, 9));
  return inputs;
}

void make_all_reduce(ProblemMaker& maker) {
  const DataType type = maker.type_of(kNumericTypes);
  std::vector<std::string> reductions{"sum", "maximum", "minimum"};
  if (is_floating(type)) reductions.emplace_back("mean");
  const std::vector<Value*> inputs = number_inputs(maker, type, 0);
  ops::all_reduce(inputs, alone(), maker.draw().pick(reductions));
}

void make_reduce_scatter(ProblemMaker& maker) {
  ops::apply("reduce_scatter", number_inputs(maker, maker.type_of(kNumericTypes), 1));
}

void make_all_gather(ProblemMaker& maker) {
  ops::apply("all_gather", number_inputs(maker, maker.type_of(kComputedTypes), 1));
}

void make_broadcast_of_rank(ProblemMaker& maker) {
  ops::broadcast(number_input(maker, kComputedTypes), alone());
}

void make_reduce(ProblemMaker& maker) {
  ops::reduce(number_input(maker, kNumericTypes), alone());
}

}  // namespace

NodeMakers communication_makers() {
  return {{"all_reduce", make_all_reduce},
          {"reduce_scatter", make_reduce_scatter},
          {"all_gather", make_all_gather},
          {"broadcast", make_broadcast_of_rank},
          {"reduce", make_reduce}};
}

}  // namespace tessera::testing
