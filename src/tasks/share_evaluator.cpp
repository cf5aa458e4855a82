#include "tasks/share_evaluator.h"

#include <memory>
#include <utility>

#include "tessera/base/error.h"

namespace tessera::tasks {
namespace {

class ShareEvaluator : public train::Evaluator {
 public:
  explicit ShareEvaluator(std::vector<Share> shares)
      : shares_(std::move(shares)), sums_(2 * shares_.size()) {}

  void add(const data::Batch& batch, const Feeds& outputs) override {
    for (size_t i = 0; i < shares_.size(); ++i) {
      const Share& share = shares_[i];
      for (int64_t row = 0; row < batch.samples; ++row) {
        sums_[2 * i] += outputs.at(share.sum).at(row);
        sums_[2 * i + 1] += share.weight.empty() ? 1 : outputs.at(share.weight).at(row);
      }
    }
  }
  train::Numbers results() const override {
    train::Numbers results;
    for (size_t i = 0; i < shares_.size(); ++i)
      results[shares_[i].name] = sums_[2 * i + 1] == 0 ? 0 : sums_[2 * i] / sums_[2 * i + 1];
    return results;
  }
  Feeds state() const override { return {{"sums", Tensor::from<double>({std::ssize(sums_)}, sums_)}}; }
  void merge(const Feeds& state) override {
    const Tensor& others = train::state_tensor(state, "sums", DataType::fp64);
    require(others.size() == std::ssize(sums_), ErrorCode::invalid_argument, "{} sums, expected {}",
            others.size(), sums_.size());
    for (size_t i = 0; i < sums_.size(); ++i) sums_[i] += others.at(static_cast<int64_t>(i));
  }

 private:
  std::vector<Share> shares_;
  std::vector<double> sums_;  // of each share the sum and the weight
};

}  // namespace

train::EvaluatorMaker share_evaluator(std::vector<Share> shares) {
  return [shares = std::move(shares)] { return std::make_unique<ShareEvaluator>(shares); };
}

}  // namespace tessera::tasks
