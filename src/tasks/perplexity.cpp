#include "tasks/perplexity.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numbers>
#include <utility>
#include <vector>

#include "tessera/base/error.h"

namespace tessera::tasks {
namespace {

int64_t characters_of(const std::string& text) {
  return std::ranges::count_if(text,
                               [](char byte) { return (static_cast<unsigned char>(byte) & 0xc0) != 0x80; });
}

class PerplexityEvaluator : public train::Evaluator {
 public:
  explicit PerplexityEvaluator(TokensText text) : text_(std::move(text)) {}

  void add(const data::Batch& batch, const Feeds& outputs) override {
    const Tensor& labels = batch.fields.at("labels");
    const int64_t length = labels.shape()[1];
    for (int64_t row = 0; row < batch.samples; ++row) {
      nats_ += outputs.at("nats").at(row);
      std::vector<int32_t> counted;
      for (int64_t i = row * length; i < (row + 1) * length; ++i) {
        if (const auto label = static_cast<int32_t>(labels.at(i)); label >= 0) counted.push_back(label);
      }
      tokens_ += static_cast<double>(counted.size());
      if (text_ && !counted.empty()) characters_ += static_cast<double>(characters_of(text_(counted)));
    }
  }

  train::Numbers results() const override {
    const auto mean = [&](double count) { return count == 0 ? 0 : nats_ / count; };
    train::Numbers results{{"perplexity", tokens_ == 0 ? 0 : std::exp(mean(tokens_))},
                           {"bits_per_token", mean(tokens_) / std::numbers::ln2}};
    if (text_) results["bits_per_character"] = mean(characters_) / std::numbers::ln2;
    return results;
  }

  Feeds state() const override {
    return {{"sums", Tensor::from<double>({3}, {nats_, tokens_, characters_})}};
  }
  void merge(const Feeds& state) override {
    const Tensor& others = train::state_tensor(state, "sums", DataType::fp64);
    require(others.size() == 3, ErrorCode::invalid_argument, "{} sums, expected 3", others.size());
    nats_ += others.at(0);
    tokens_ += others.at(1);
    characters_ += others.at(2);
  }

 private:
  TokensText text_;
  double nats_ = 0;
  double tokens_ = 0;
  double characters_ = 0;
};

}  // namespace

train::EvaluatorMaker perplexity_evaluator(TokensText text) {
  return [text = std::move(text)] { return std::make_unique<PerplexityEvaluator>(text); };
}

}  // namespace tessera::tasks
