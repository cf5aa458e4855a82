// Pretraining of BERT: masked words, and whether one text follows another.
#pragma once

#include <cstdint>
#include <vector>

#include "tessera/models/bert.h"
#include "tessera/nn/task.h"
#include "tessera/train/evaluator.h"

namespace tessera::tasks {

struct BertPretrainingOptions {
  models::BertConfig network = models::bert_tiny();
  int64_t tokens = 128;                    // of a row
  int64_t pairs = 1;                       // of a row, at most
  int64_t list = 0;                        // places of the list that a batch is trained in; 0: in rows
  int64_t mask = 103;                      // the token that stands for what is masked
  std::vector<int64_t> kept = {101, 102};  // tokens that are never to be filled in: those around the texts
  double masked = 0.15;                    // share of the places to be filled in

  int64_t places() const;  // to be filled in of a row, at most
};

// Devlin et al. 2019 (arXiv:1810.04805). Of the places of a row that may be masked, at least one and no more
// than their share are, drawn without replacement; 8 of 10 of these hold the mask, 1 any token, 1 what was
// there. Only they are decoded.
// Rows of several pairs, one after another, have less padding; pairs do not see each other, and the positions
// of each begin anew.
// Rows of one pair may be trained without their padding, in one list of their tokens (nn::TokenList): a batch
// has no more tokens than that has places, or its losses are not finite. What is measured and served is
// computed in rows.
//   inputs:    tokens, segments int32 [batch, tokens]; lengths int32 [batch, pairs], tokens of each pair; 0
//              where there is none, after the others; next_sentence int32 [batch, pairs], 0 where the second
//              text follows the first, otherwise 1. Of one pair a row they are [batch]
//   objective: loss, the sum of masked (mean cross-entropy of the places to be filled in) and next_sentence
//   metrics:   both, masked_accuracy and next_sentence_accuracy
//   served:    logits fp32 [batch, tokens, vocabulary], and next_sentence fp32 [batch, 2] or [batch, pairs,
//   2]
// Throws Error(invalid_argument) where the mask is none of the vocabulary, the share is not above 0 and at
// most 1, a row has no pair, rows have more tokens than the network has positions, or a list is of rows of
// several pairs.
nn::Task bert_pretraining(const BertPretrainingOptions& options = {});

// The two losses and the two accuracies; masks are the same at each evaluation.
train::EvaluatorMaker bert_pretraining_evaluator();

}  // namespace tessera::tasks
