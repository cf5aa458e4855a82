// The loss of many classes together with its gradient, and with what was likeliest where training counts
// that: each would otherwise be a pass over the logits, which are the largest tensor of a step of language.
#pragma once

#include <optional>

#include "tessera/graph/graph.h"
#include "tessera/passes/fusion_pattern.h"

namespace tessera::backend {

// "cross_entropy": the gradient of cross_entropy, the loss of the same logits and labels, and argmax over
// their classes, of which the gradient is there and one of the others. What the gradient itself depends on,
// as where a loss is the weight of another, is left out.
FusionPattern cross_entropy_pattern();
// The same kind: the loss and the argmax where there is no gradient, as in evaluation, or one that waits for
// them. After the other.
FusionPattern evaluated_cross_entropy_pattern();

struct CrossEntropyBody {
  size_t logits = 0, labels = 0;                    // inputs
  std::optional<size_t> loss_gradient;              // input, where the gradient is an output
  std::optional<size_t> loss, gradient, likeliest;  // outputs that something reads
  // Of logits [rows, columns], the first of which are the classes.
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t classes = 0;
  double smoothing = 0;
  int64_t ignored = 0;  // label
};

// What the node's values are to its kernels: of a fused node of the kind, of cross_entropy or its gradient.
CrossEntropyBody read_cross_entropy(const Node& node);

}  // namespace tessera::backend
