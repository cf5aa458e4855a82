// Collectives of one rank.
#include "kernel_fuzz/problem_maker.h"

namespace tessera::testing {
namespace {

ops::RankGroup alone() {
  return {};
}

Value* number_input(ProblemMaker& maker, TypeSet types, int64_t least_rank) {
  return maker.input(maker.type_of(types), maker.shape(least_rank, 4), -9, 9);
}

void make_all_reduce(ProblemMaker& maker) {
  Draw& draw = maker.draw();
  const DataType type = maker.type_of(kNumericTypes);
  std::vector<std::string> reductions{"sum", "maximum", "minimum"};
  if (is_floating(type)) reductions.emplace_back("mean");
  std::vector<Value*> inputs;
  for (int64_t count = draw.between(1, 4); count > 0; --count)
    inputs.push_back(maker.input(type, maker.shape(0, 3), -9, 9));
  ops::all_reduce(inputs, alone(), draw.pick(reductions));
}

void make_reduce_scatter(ProblemMaker& maker) {
  ops::reduce_scatter(number_input(maker, kNumericTypes, 1), alone());
}

void make_all_gather(ProblemMaker& maker) {
  ops::all_gather(number_input(maker, kComputedTypes, 1), alone());
}

void make_broadcast_of_rank(ProblemMaker& maker) {
  ops::broadcast(number_input(maker, kComputedTypes, 0), alone());
}

void make_reduce(ProblemMaker& maker) {
  ops::reduce(number_input(maker, kNumericTypes, 0), alone());
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
