// One label for each text, or for each pair of texts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tessera/compile/feeds.h"
#include "tessera/nn/task.h"
#include "tessera/tasks/fine_tuning.h"
#include "tessera/text/tokenizer.h"
#include "tessera/train/evaluator.h"
#include "tessera/train/prediction.h"

namespace tessera::tasks {

struct LabeledText {
  std::string text;
  std::optional<std::string> pair = {};  // a second text
  int32_t label = -1;                    // its place among the network's labels; -1: not known
};

// transformers' BertForSequenceClassification.
//   inputs:    tokens, segments int32 [batch, tokens]; lengths int32 [batch], tokens that are no padding;
//              labels int32 [batch]; rows with label -1 count nothing
//   objective: loss, the mean cross-entropy; metric: accuracy
//   served:    logits fp32 [batch, labels]
// Throws Error(invalid_argument) where there are less than two labels, or rows have more tokens than the
// network has positions.
nn::Task text_classification(const FineTuningOptions& options);

// The task's inputs, cut where a text is too long: the longer one of a pair.
Feeds text_classification_rows(const std::vector<LabeledText>& texts, const text::Tokenizer& tokenizer,
                               const FineTuningOptions& options);

// "loss" and "accuracy".
train::EvaluatorMaker text_classification_evaluator();

// Each text with its label and how likely that is; and how many are right, where they are known.
train::PredictionTextMaker text_classification_text(std::vector<std::string> labels,
                                                    std::vector<LabeledText> texts);

}  // namespace tessera::tasks
