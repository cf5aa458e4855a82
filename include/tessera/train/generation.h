// Going on with text: tokens drawn from what a network says comes next.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/compile/executable_family.h"
#include "tessera/nn/task.h"

namespace tessera::train {

// Of which tokens one is drawn, and how. In this order: the top_k likeliest, of those the likeliest whose
// probabilities add up to top_p.
struct Sampling {
  double temperature = 1;  // logits are divided by it; 0: the likeliest token, always
  int64_t top_k = 0;       // 0: all
  double top_p = 1;        // above 0, at most 1
  uint64_t seed = 1;
};
// Of logits of one place. The same one for the same logits, seed and step. Throws Error(invalid_argument) for
// a sampling out of range or no logits, Error(not_finite) where a logit is NaN or all are minus infinity.
int64_t draw_token(std::span<const float> logits, const Sampling& sampling, int64_t step);

// What computes what a task serves: serve() or Trainer::serve().
using Serving = std::function<ExecutableFamily(const nn::Task& task)>;

// What text is to a network that goes on with it.
struct TextContinuation {
  int64_t window = 0;              // tokens that it sees at most
  std::vector<int32_t> start;      // what a text without a prompt goes on from; empty: it needs one
  std::vector<int32_t> ends = {};  // the text ends before the first of them
  std::function<std::vector<int32_t>(std::string_view text)> tokens;
  std::function<std::string(std::span<const int32_t> tokens)> text;
  // The network's passes over one row of text, with room for so many tokens in states that advance.
  //   inputs: tokens int32 [1, tokens]; places int32 [tokens], where in the row each stands, negative where
  //           one fills up; last int32 [1], which of the tokens is the last
  //   served: logits fp32 [1, vocabulary] of the token after that
  std::function<nn::Task(int64_t capacity)> passes;
};

// One row of text as a network reads it: in passes, each of which goes on where the one before it ended. What
// the network keeps of the tokens stays on the device. One thread at a time uses it.
class TextReader {
 public:
  // Compiles a pass over a block of tokens and one over a single token. Throws as compile().
  TextReader(const TextContinuation& continuation, const Serving& serve, int64_t capacity);
  ~TextReader();
  TextReader(const TextReader&) = delete;
  TextReader& operator=(const TextReader&) = delete;

  // fp32 [1, vocabulary]: logits of the token after these, which stand after all that was read before. Throws
  // Error(invalid_argument) for none, or where there is no room for them.
  Tensor read(std::span<const int32_t> tokens);
  // read() in two halves, so that the host does other things while a device works. Throws as read(), and
  // begin() Error(invalid_argument) while a reading is under way, finish() where none is. A reading that is
  // not finished is forgotten with the reader.
  void begin(std::span<const int32_t> tokens);
  Tensor finish();
  // What is read next begins a row.
  void forget() { size_ = 0; }
  int64_t size() const { return size_; }  // tokens that were read
  int64_t capacity() const { return capacity_; }

 private:
  void submit(std::span<const int32_t> tokens);

  int64_t capacity_;
  int64_t block_;
  ExecutableFamily passes_;
  std::shared_ptr<Executable> under_way_;
  int64_t size_ = 0;
};

struct GenerationOptions {
  int64_t tokens = 200;  // at most so many
  Sampling sampling = {};
  std::vector<std::string> stops = {};  // the text ends before the first of them
};
// Gives `receive` the text after the prompt, piece by piece; it returns false to have no more. The network
// sees the last TextContinuation::window tokens of the prompt and those after them; where there is no room
// for one more, the older half is forgotten. Returns how many tokens were drawn, without one that ends the
// text. Throws as draw_token() and TextReader, and Error(invalid_argument) where there is nothing to go on
// from.
int64_t continue_text(const Serving& serve, const TextContinuation& continuation, std::string_view prompt,
                      const GenerationOptions& options,
                      const std::function<bool(std::string_view piece)>& receive);

}  // namespace tessera::train
