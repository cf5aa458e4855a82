// Text as recipes ask for it, for whichever task that reads rows of "tokens": the bytes of files, or token
// shards.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tessera/base/made_once.h"
#include "tessera/base/option.h"
#include "tessera/base/tensor.h"
#include "tessera/data/rows.h"
#include "tessera/data/token_shards.h"
#include "tessera/train/workload.h"

namespace tessera::tasks {

// data.kind, data.path, data.tokens (with that default), those of a task, and those of rows.
std::vector<Option> text_options(int64_t tokens, std::vector<Option> of_task = {});

// model.width, heads, layers and dropout of a transformer's layers.
std::vector<Option> transformer_options(int64_t width, int64_t heads, int64_t layers, double dropout);
// A path that is missing, heads that do not divide the width.
std::vector<Contradiction> check_text(const Options& settings);

// The token of the largest of logits [batch, tokens, vocabulary] at a place, the first of several.
int64_t likeliest_token(const Tensor& logits, int64_t place);
// One character for a byte: what cannot be shown is a dot.
std::string shown_byte(int64_t token);

class TextData {
 public:
  // Throws Error(io) and Error(invalid_file) as TokenSet does; bytes are read when they are asked for, which
  // throws as read_byte_windows().
  explicit TextData(const Options& settings);

  // Tokens are below it.
  int64_t vocabulary() const;
  // What the shards' tokenizer says of special tokens; null for bytes.
  const data::TokenSetHeader* header() const;
  // Trains on rows and tests on the others, as the recipe says; named after data.path.
  train::Workload workload(nn::Task task, train::EvaluatorMaker evaluator) const;
  // int32 [rows, data.tokens]: rows that are tested on, no more than people look at.
  Tensor tokens_to_look_at() const;
  // How a network of such tokens goes on with text. Throws as text::read_tokenizer().
  train::TextContinuation continuation() const;
  // How people read a token.
  std::function<std::string(int64_t token)> shown() const;

 private:
  using Bytes = MadeOnce<std::string, data::HeldOut>;

  data::HeldOut bytes() const { return bytes_of(settings_, *bytes_); }
  static data::HeldOut bytes_of(const Options& settings, Bytes& bytes);

  Options settings_;
  std::shared_ptr<Bytes> bytes_ = std::make_shared<Bytes>(1);  // by their path, read when they are asked for
  std::shared_ptr<const data::TokenSet> tokens_;               // null for bytes
};

}  // namespace tessera::tasks
