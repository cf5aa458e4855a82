// What a masked language model fills gaps with, for a terminal.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "tessera/base/random.h"
#include "tessera/tasks/masked_language_model.h"

#include "tasks/text_data.h"

namespace tessera::tasks {
namespace {

constexpr uint64_t kGapsSeed = 1;

using Shown = std::function<std::string(int64_t token)>;

class GapText : public train::PredictionText {
 public:
  GapText(int64_t mask, Shown shown) : mask_(mask), shown_(std::move(shown)) {}

  std::string summary() const override {
    return fmt::format("{} of {} gaps filled with what was there\n", hits_, gaps_);
  }

 private:
  std::string example(const train::Example& one) override {
    const Tensor& tokens = one.batch.fields.at("tokens");
    const Tensor& labels = one.batch.fields.at("labels");
    const int64_t length = tokens.shape()[1];
    std::string given;
    std::string filled;
    for (int64_t place = one.row * length; place < (one.row + 1) * length; ++place) {
      const auto token = static_cast<int64_t>(tokens.at(place));
      given += token == mask_ ? "_" : shown_(token);
      const int64_t said = token == mask_ ? likeliest_token(one.outputs.at("logits"), place) : token;
      filled += said == mask_ ? "_" : shown_(said);
      if (token != mask_) continue;
      ++gaps_;
      hits_ += said == static_cast<int64_t>(labels.at(place)) ? 1 : 0;
    }
    return fmt::format("row {}:\n  {}\n  {}\n", one.number, given, filled);
  }

  int64_t mask_;
  Shown shown_;
  int64_t gaps_ = 0;
  int64_t hits_ = 0;
};

}  // namespace

Feeds with_gaps(const Tensor& tokens, const MaskedLanguageModelOptions& options) {
  Tensor given = tokens.clone();
  const Random random(kGapsSeed);
  for (int64_t place = 0; place < given.size(); ++place) {
    const auto token = static_cast<int64_t>(tokens.at(place));
    const bool kept = std::find(options.kept.begin(), options.kept.end(), token) != options.kept.end();
    if (!kept && random.uniform(static_cast<uint64_t>(place)) < options.masked)
      given.set(place, static_cast<double>(options.mask_token()));
  }
  return {{"tokens", given}, {"labels", tokens}};
}

train::PredictionTextMaker masked_language_model_text(const MaskedLanguageModelOptions& options,
                                                      Shown shown) {
  if (!shown) shown = shown_byte;
  return [mask = options.mask_token(), shown = std::move(shown)] {
    return std::make_unique<GapText>(mask, shown);
  };
}

}  // namespace tessera::tasks
