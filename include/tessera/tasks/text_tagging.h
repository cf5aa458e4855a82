// A tag for each word of a text, such as the names in it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tessera/compile/feeds.h"
#include "tessera/nn/task.h"
#include "tessera/tasks/fine_tuning.h"
#include "tessera/text/tokenizer.h"
#include "tessera/train/evaluator.h"
#include "tessera/train/prediction.h"

namespace tessera::tasks {

struct TaggedText {
  std::vector<std::string> words;  // of which the tokenizer makes a token or several each
  std::vector<int32_t> tags = {};  // of each word, places among the network's labels; empty: not known
};

// transformers' BertForTokenClassification. A word's tag is said of its first token.
//   inputs:    tokens, segments int32 [batch, tokens]; lengths int32 [batch], tokens that are no padding;
//              labels int32 [batch, tokens]; tokens with label -1 count nothing
//   objective: loss, the mean cross-entropy of tokens that count; metric: accuracy of these
//   served:    logits fp32 [batch, tokens, labels]
// Throws Error(invalid_argument) where there are less than two labels, or rows have more tokens than the
// network has positions.
nn::Task text_tagging(const FineTuningOptions& options);

// The task's inputs. Words that a row has no room for are left out.
Feeds text_tagging_rows(const std::vector<TaggedText>& texts, const text::Tokenizer& tokenizer,
                        const FineTuningOptions& options);

// What several words together are, by their tags: the words from B-X over all I-X that follow it, of the type
// X, as the tasks of CoNLL count them, where I-X after anything else begins one, too; and each word with a
// tag that begins with neither and is not "O".
struct TaggedSpan {
  int64_t begin = 0;
  int64_t end = 0;  // after the last word
  std::string type;
  bool operator==(const TaggedSpan&) const = default;
};
std::vector<TaggedSpan> tagged_spans(const std::vector<std::string>& tags);

// "loss" and "accuracy" of words; "precision", "recall" and "f1" of such spans, which are right where both
// ends and the type are.
train::EvaluatorMaker text_tagging_evaluator(std::vector<std::string> labels);

// Each text with the tags of its words, "[" and "]" around spans.
train::PredictionTextMaker text_tagging_text(std::vector<std::string> labels, std::vector<TaggedText> texts);

}  // namespace tessera::tasks
