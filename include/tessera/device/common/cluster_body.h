// What a cluster computes, and over which iteration space.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tessera/graph/graph.h"

namespace tessera::backend {

// The kernel keys of what is a cluster: every elementwise operator, whatever operators there are, dropout and
// reductions.
std::vector<std::string> cluster_keys();

// What the node computes in primitives: a copy of a fused node's body, or a body of one node made for it.
std::unique_ptr<Graph> cluster_body(const Node& node);

// Which axes a reduction of a value of `rank` axes reduces.
std::vector<bool> reduced_axes(const Node& reduction, size_t rank);

// Whether a value of shape `own` broadcasts to `shape` as in NumPy.
bool broadcasts_to(const Shape& own, const Shape& shape);

// The axes of a cluster's widest values, merged as far as every operand allows.
struct IterationSpace {
  std::vector<int64_t> extents;  // outermost first; at least one axis
  std::vector<bool> reduced;     // per axis: the ending reduction runs over it
  // Per operand and axis, in elements; 0 where the operand is broadcast. The innermost is 0 or 1.
  std::vector<std::vector<int64_t>> strides;

  int64_t inner() const { return extents.back(); }
  int64_t elements() const;
  int64_t rows() const { return inner() == 0 ? 0 : elements() / inner(); }
};

// `operands` are the shapes of what is read, broadcast against `shape` as in NumPy. Axes of extent 1 vanish;
// neighbors merge where every operand walks through both with one stride and both or none are reduced.
IterationSpace make_space(const Shape& shape, const std::vector<bool>& reduced,
                          const std::vector<Shape>& operands);

}  // namespace tessera::backend
