#include <array>
#include <cmath>
#include <memory>

#include "tessera/base/error.h"
#include "tessera/tasks/translation.h"
#include "tessera/text/bleu.h"

namespace tessera::tasks {
namespace {

std::vector<int32_t> row_of(const Tensor& tokens, int64_t row, double count) {
  const int64_t each = tokens.shape()[1];
  const auto first =
      tokens.data<int32_t>().subspan(static_cast<size_t>(row * each), static_cast<size_t>(count));
  return {first.begin(), first.end()};
}

class TranslationEvaluator : public train::Evaluator {
 public:
  TranslationEvaluator(const models::TransformerConfig& network, const TranslationTest& test)
      : network_(network), test_(test) {}

  void add(const data::Batch& batch, const Feeds& outputs) override {
    for (int64_t row = 0; row < batch.samples; ++row) {
      losses_ += outputs.at("losses").at(row);
      hits_ += outputs.at("hits").at(row);
      counts_ += outputs.at("counts").at(row);
      if (test_.translated > 0 && std::ssize(texts_) >= test_.translated) continue;
      // Without the tokens that end them.
      texts_.push_back(row_of(batch.fields.at("source"), row, batch.fields.at("source_lengths").at(row) - 1));
      right_.push_back(row_of(batch.fields.at("labels"), row, batch.fields.at("target_lengths").at(row) - 1));
    }
  }
  void finish(const train::Serving& serve) override {
    if (texts_.empty()) return;
    const auto found = translate(serve, network_, test_.translator, texts_);
    for (size_t i = 0; i < texts_.size(); ++i) {
      const std::string said = found[i].empty() ? std::string() : test_.text(found[i].front().tokens);
      bleu_.add(said, test_.text(right_[i]));
    }
  }
  train::Numbers results() const override {
    const double loss = counts_ == 0 ? 0 : losses_ / counts_;
    return {{"bleu", bleu_.score()},
            {"perplexity", std::exp(loss)},
            {"loss", loss},
            {"accuracy", counts_ == 0 ? 0 : hits_ / counts_}};
  }
  Feeds state() const override {
    const std::vector<int64_t> bleu = bleu_.numbers();
    return {{"sums", Tensor::from<double>({3}, {losses_, hits_, counts_})},
            {"bleu", Tensor::from<int64_t>({std::ssize(bleu)}, bleu)}};
  }
  void merge(const Feeds& state) override {
    const Tensor& sums = train::state_tensor(state, "sums", DataType::fp64);
    require(sums.size() == 3, ErrorCode::invalid_argument, "{} sums, expected 3", sums.size());
    losses_ += sums.at(0);
    hits_ += sums.at(1);
    counts_ += sums.at(2);
    const auto bleu = train::state_tensor(state, "bleu", DataType::int64).data<int64_t>();
    bleu_.add(text::BleuCounts::of_numbers({bleu.begin(), bleu.end()}));
  }

 private:
  models::TransformerConfig network_;
  TranslationTest test_;
  double losses_ = 0;
  double hits_ = 0;
  double counts_ = 0;
  std::vector<std::vector<int32_t>> texts_;
  std::vector<std::vector<int32_t>> right_;
  text::BleuCounts bleu_;
};

}  // namespace

train::EvaluatorMaker translation_evaluator(const models::TransformerConfig& network,
                                            const TranslationTest& test) {
  return [network, test] { return std::make_unique<TranslationEvaluator>(network, test); };
}

}  // namespace tessera::tasks
