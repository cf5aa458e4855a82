// What the collectives share: the group, and that a group of one leaves everything as it is.
#pragma once

#include <string>
#include <vector>

#include "tessera/graph/operator.h"
#include "tessera/ops/functions.h"

namespace tessera::ops {

// The schema of a collective of one input (`x`), with the attributes `group` and `ranks`, the class and the
// reference loop for one rank; the rest is the operator's.
OperatorSchema collective(const std::string& name, const std::string& documentation, TypeSet types);

// Any number of inputs, each of a type of its own, and a result of each.
void take_several(OperatorSchema& schema);

// "sum", unless the node says otherwise; one of `legal`.
AttributeSpecification reduction_attribute(const std::string& legal);

// From one rank to all, or the other way round: with the attribute `root`, results like x, and a gradient
// that goes back from or to the same root.
struct RootedCollective {
  std::string name;
  std::string documentation;
  TypeSet types;
  std::string root;  // what it is, for the attribute's documentation
  bool moves_only = false;
  Value* (*gradient)(Value* dy, const RankGroup& group, int64_t root);
};
OperatorSchema rooted_collective(const RootedCollective& description);

RankGroup group_of(const Attributes& attributes);

// Refuses less than one rank.
void check_ranks(const InferenceCall& call);
// Refuses a reduction that is none of these, and a mean of integers.
void check_reduction(const InferenceCall& call, const std::vector<std::string>& legal);
// The extent of an input's first axis. Refuses scalars.
Dimension first_extent(const InferenceCall& call, size_t input);

// The collective of each input.
std::vector<Value*> results_of(const std::string& collective, const std::vector<Value*>& inputs,
                               const RankGroup& group);

// Of all results: zeros of those that nothing was made of.
std::vector<Value*> gradients_or_zeros(const GradientCall& call);

OperatorExample collective_example(const Shape& shape, DataType type, const Attributes& attributes = {});
OperatorExample collective_example_of_several(const std::vector<Shape>& shapes);

}  // namespace tessera::ops
