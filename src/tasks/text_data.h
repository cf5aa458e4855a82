// Text as recipes ask for it, for whichever task that reads rows of "tokens": the section [data].
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tessera/base/option.h"
#include "tessera/base/tensor.h"
#include "tessera/tasks/texts.h"
#include "tessera/train/task_registry.h"
#include "tessera/train/workload.h"

namespace tessera::tasks {

// data.kind, data.tokens (with that default), those of a task, those of rows, and those of the kinds.
train::OptionSection text_options(int64_t tokens, std::vector<Option> of_task = {});

// model.width, heads, layers and dropout of a transformer's layers.
std::vector<Option> transformer_options(int64_t width, int64_t heads, int64_t layers, double dropout);
// What the kind of text does not have, heads that do not divide the width.
std::vector<Contradiction> check_text(const Options& settings);

// The token of the largest of logits [batch, tokens, vocabulary] at a place, the first of several.
int64_t likeliest_token(const Tensor& logits, int64_t place);
// One character for a byte: what cannot be shown is a dot.
std::string shown_byte(int64_t token);

std::shared_ptr<const Texts> open_texts(const Options& settings);
// Trains on rows and tests on the others; named after the data.
train::Workload text_workload(nn::Task task, const std::shared_ptr<const Texts>& texts,
                              train::EvaluatorMaker evaluator, const Options& settings);
// How a network of such tokens goes on with text, but for its passes.
train::TextContinuation continuation_of(const Texts& texts, const Options& settings);

}  // namespace tessera::tasks
