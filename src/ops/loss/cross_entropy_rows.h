// What cross_entropy and its gradient share.
#pragma once

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "tessera/base/error.h"
#include "tessera/graph/operator.h"

#include "ops/normalization/normalization.h"

namespace tessera::ops {

inline std::vector<AttributeSpecification> cross_entropy_attributes() {
  return {{"smoothing", AttributeKind::real, 0.0,
           "Share of the target spread evenly over all classes, in [0, 1]."},
          {"ignored_label", AttributeKind::integer, -100, "Rows with this label count nothing."},
          {"classes", AttributeKind::integer, 0,
           "K: the columns after the first so many are no classes; 0: all are."}};
}

// logits: [rows, columns], labels: [rows].
inline void check_cross_entropy(const InferenceCall& call) {
  const TensorType& logits = call.input(0);
  const TensorType& labels = call.input(1);
  call.require(logits.rank() == 2, "logits must be [rows, columns]");
  call.require(labels.rank() == 1 && labels.shape[0] == logits.shape[0],
               "labels must be [rows], one for each row of logits");
  const double smoothing = call.attributes.real("smoothing");
  call.require(smoothing >= 0 && smoothing <= 1, "smoothing must be within [0, 1]");
  const int64_t classes = call.attributes.integer("classes");
  const Dimension& columns = logits.shape[1];
  call.require(classes >= 0 && (!columns.is_static() || classes <= columns.value()),
               "classes must be within 0 and the columns of logits");
}

// One number per row, in which rows are added up: fp32 beside 16-bit logits.
inline TensorType row_losses(const InferenceCall& call) {
  return {statistics_type(call.input(0).data_type), {call.input(0).shape[0]}};
}

// Whether the row counts. Throws Error(invalid_argument) on a label that is neither a class nor ignored.
inline bool label_counts(const ReferenceCall& call, int64_t row, int64_t label, int64_t classes) {
  if (label == call.attributes().integer("ignored_label")) return false;
  require(label >= 0 && label < classes, ErrorCode::invalid_argument,
          "node '{}': label {} of row {} is outside the {} classes", call.node.name(), label, row, classes);
  return true;
}

// The logarithms of the probabilities of one row, safe from overflow. The largest logit is subtracted first:
// it may be so large that the sum's logarithm is lost beside it.
class LogProbabilities {
 public:
  explicit LogProbabilities(std::span<const double> logits)
      : largest_(*std::max_element(logits.begin(), logits.end())) {
    double sum = 0;
    for (double logit : logits) sum += std::exp(logit - largest_);
    log_sum_ = std::log(sum);
  }
  double of(double logit) const { return logit - largest_ - log_sum_; }

 private:
  double largest_;
  double log_sum_ = 0;
};

}  // namespace tessera::ops
