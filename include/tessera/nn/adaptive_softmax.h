// Large vocabularies whose rare tokens cost less (Grave et al., "Efficient softmax approximation for GPUs",
// 2017, arXiv:1609.04309; for what is read, Baevski and Auli 2019, arXiv:1809.10853): the most frequent
// tokens stand in a head, the others in clusters, each narrower than that before it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tessera/nn/context.h"
#include "tessera/ops/expression.h"

namespace tessera::nn {

// Tokens by falling frequency.
struct AdaptiveVocabulary {
  int64_t tokens = 0;
  std::vector<int64_t> cutoffs = {};  // the first token of each cluster, rising; none: one plain softmax
  int64_t narrowing = 4;              // by which the width is divided from each cluster to the next
  bool operator==(const AdaptiveVocabulary&) const = default;
};
// Throws Error(invalid_argument) where cutoffs do not rise within the vocabulary, or a cluster has no width.
void check_adaptive(const AdaptiveVocabulary& vocabulary, int64_t width);

// What a softmax multiplies by. Of a cluster of a width of its own, what is given is projected to that first.
struct AdaptiveWeights {
  Value* head = nullptr;       // [first cutoff + clusters, width]: its tokens, and then one for each cluster
  Value* head_bias = nullptr;  // null: none
  struct Tail {
    Value* projection = nullptr;  // [own width, width]; null: of that width already
    Value* table = nullptr;       // [tokens, own width]
    Value* bias = nullptr;        // null: none
  };
  std::vector<Tail> tails = {};
};

// Named as torch.nn.AdaptiveLogSoftmaxWithLoss names them: head.weight, tail.0.0.weight and so on, and
// head.bias where there is to be one.
AdaptiveWeights adaptive_weights(Context& context, const AdaptiveVocabulary& vocabulary, int64_t width,
                                 bool head_bias = false);

// Tables that stand for tokens that are read and for those that are foretold: `name`.emb_layers.I.weight and
// `name`.emb_projs.I in the present scope, all from a normal distribution of that deviation.
class AdaptiveTables {
 public:
  AdaptiveTables(Context& context, const std::string& name, const AdaptiveVocabulary& vocabulary,
                 int64_t width, double deviation);

  // tokens int32 [...] -> [..., width].
  ops::Expression embedded(Value* tokens) const;
  // The same tables as weights, with the clusters' rows of the head, `name`.cluster_weight, and biases,
  // `name`.cluster_bias and `name`.out_layers.I.bias, which begin with zeros.
  AdaptiveWeights weights(Context& context, const std::string& name) const;

 private:
  AdaptiveVocabulary vocabulary_;
  int64_t width_;
  double deviation_;
  std::vector<Value*> tables_;       // the head's first
  std::vector<Value*> projections_;  // [own width, width]; null where that is the width
};

// In nats, fp32 [rows]: x [rows, width], labels int32 [rows]; 0 and no gradient where a label is -100.
// `most_labels` is a bound for each cluster: how many of the labels are its own at most. It is then computed
// for the rows of those alone, as many as the bound rounded up, or for all rows (whose number is static)
// where that is little more. A label beyond has the loss NaN, made by the node kLabelBeyondMost. Empty: every
// cluster is computed for all rows. Throws Error(invalid_argument) unless there is one for each cluster, none
// negative.
ops::Expression adaptive_losses(const AdaptiveVocabulary& vocabulary, const AdaptiveWeights& weights,
                                Value* x, Value* labels, const std::vector<int64_t>& most_labels = {});
inline constexpr const char* kLabelBeyondMost = "label_beyond_the_most_of_its_cluster";
// Logarithms of the probabilities of all tokens: [rows, width] -> [rows, tokens].
ops::Expression adaptive_log_probabilities(const AdaptiveVocabulary& vocabulary,
                                           const AdaptiveWeights& weights, Value* x);

}  // namespace tessera::nn
