#include "tessera/tasks/click_through.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "tessera/base/error.h"
#include "tessera/nn/layers.h"

namespace tessera::tasks {
namespace {

constexpr double kLeastProbability = 1e-7;  // in the logarithms of the loss

// [batch, pairs]: the dot products of all pairs of rows of x: [batch, rows, width].
Value* interactions(Value* x, int64_t rows) {
  Value* products = ops::matmul(x, x, {.transpose_b = true});
  std::vector<int64_t> below;  // the diagonal
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < i; ++j) below.push_back(i * rows + j);
  }
  const auto pairs = std::ssize(below);
  Value* places = ops::constant(x->graph(), Tensor::from<int64_t>({pairs}, below));
  return ops::gather(ops::reshape(products, {x->shape()[0], rows * rows}), places, 1);
}

Value* logits(const ClickThroughOptions& options, nn::Context& context, const nn::Values& in) {
  Value* categories = in["categories"];
  const Dimension& batch = categories->shape()[0];
  const auto tables = std::ssize(options.entries);
  std::vector<Value*> rows;
  for (int64_t table = 0; table < tables; ++table) {
    Value* column = ops::reshape(ops::slice(categories, {0, table}, {ops::kWholeAxis, table + 1}), {batch});
    const auto entries = options.entries[static_cast<size_t>(table)];
    Value* row = nn::embedding(
        context, "table" + std::to_string(table), column, entries, options.width,
        {.updates_rows = true, .weight = nn::normal(1 / std::sqrt(static_cast<double>(options.width)))});
    rows.push_back(ops::reshape(row, {batch, 1, options.width}));
  }
  Value* x = nullptr;
  if (options.numbers > 0) {
    x = ops::relu(nn::linear(context, "numbers", in["numbers"], options.width));
    rows.push_back(ops::reshape(x, {batch, 1, options.width}));
  }
  Value* all = ops::concat(rows, 1);
  // What each category says by itself is in its embedding too.
  Value* own = ops::reshape(all, {batch, std::ssize(rows) * options.width});
  x = ops::concat({own, interactions(all, std::ssize(rows))}, 1);
  for (size_t layer = 0; layer < options.hidden.size(); ++layer)
    x = ops::relu(nn::linear(context, "layer" + std::to_string(layer), x, options.hidden[layer]));
  return ops::reshape(nn::linear(context, "output", x, 1), {batch});
}

class ClickThroughEvaluator : public train::Evaluator {
 public:
  void add(const data::Batch& batch, const Feeds& outputs) override {
    const Tensor& probabilities = outputs.at("probabilities");
    const Tensor& labels = batch.fields.at("labels");
    for (int64_t row = 0; row < batch.samples; ++row)
      said_.emplace_back(probabilities.at(row), labels.at(row) > 0.5);
  }

  train::Numbers results() const override {
    double loss = 0;
    for (const auto& [probability, happens] : said_)
      loss -= std::log(std::max(kLeastProbability, happens ? probability : 1 - probability));
    return {{"auc", area()}, {"loss", loss / static_cast<double>(std::max<size_t>(said_.size(), 1))}};
  }

  Feeds state() const override {
    Tensor probabilities(DataType::fp64, {std::ssize(said_)});
    Tensor happens(DataType::boolean, {std::ssize(said_)});
    for (size_t i = 0; i < said_.size(); ++i) {
      probabilities.data<double>()[i] = said_[i].first;
      happens.data<bool>()[i] = said_[i].second;
    }
    return {{"probabilities", probabilities}, {"happens", happens}};
  }
  void merge(const Feeds& state) override {
    const Tensor& probabilities = train::state_tensor(state, "probabilities", DataType::fp64);
    const Tensor& happens = train::state_tensor(state, "happens", DataType::boolean);
    require(probabilities.shape() == happens.shape(), ErrorCode::invalid_argument,
            "{} probabilities of {} rows", probabilities.size(), happens.size());
    for (int64_t row = 0; row < probabilities.size(); ++row)
      said_.emplace_back(probabilities.at(row), happens.at(row) != 0);
  }

 private:
  // By ranks (Mann and Whitney 1947), equal probabilities having the mean of theirs.
  double area() const {
    std::vector<std::pair<double, bool>> sorted = said_;
    std::sort(sorted.begin(), sorted.end());
    double ranks = 0;
    double happening = 0;
    for (size_t begin = 0, end = 0; begin < sorted.size(); begin = end) {
      double among = 0;
      for (end = begin; end < sorted.size() && sorted[end].first == sorted[begin].first; ++end)
        among += sorted[end].second ? 1 : 0;
      ranks += among * (static_cast<double>(begin + end) + 1) / 2;
      happening += among;
    }
    const double pairs = happening * (static_cast<double>(sorted.size()) - happening);
    return pairs == 0 ? 0.5 : (ranks - happening * (happening + 1) / 2) / pairs;
  }

  std::vector<std::pair<double, bool>> said_;
};

class ClickThroughText : public train::PredictionText {
 public:
  std::string summary() const override {
    return labeled_ == 0 ? "" : fmt::format("{} of {} on the right side of 50 %\n", right_, labeled_);
  }

 private:
  std::string example(const train::Example& one) override {
    const double probability = one.outputs.at("probabilities").at(one.row);
    std::string text = fmt::format("row {}: {:.1f} %", one.number, 100 * probability);
    if (const auto labels = one.batch.fields.find("labels"); labels != one.batch.fields.end()) {
      const bool happens = labels->second.at(one.row) > 0.5;
      ++labeled_;
      right_ += happens == (probability > 0.5) ? 1 : 0;
      text += happens ? ", and it happened" : ", and it did not happen";
    }
    return text + "\n";
  }

  int64_t labeled_ = 0;
  int64_t right_ = 0;
};

}  // namespace

nn::Task click_through(const ClickThroughOptions& options) {
  require(!options.entries.empty(), ErrorCode::invalid_argument, "click_through needs a table");
  for (const int64_t entries : options.entries)
    require(entries > 0, ErrorCode::invalid_argument, "click_through: a table has {} entries", entries);
  const Dimension batch = Dimension::symbol("batch");
  nn::Task task{.name = "click_through",
                .network = "dlrm",
                .inputs = {{"categories", {DataType::int32, {batch, std::ssize(options.entries)}}}}};
  if (options.numbers > 0) task.inputs.push_back({"numbers", {DataType::fp32, {batch, options.numbers}}});
  task.inputs.push_back({"labels", {DataType::fp32, {batch}}});
  task.metrics = {{.name = "loss"}, {.name = "auc", .larger_is_better = true}};
  task.training = [=](nn::Context& context, const nn::Values& in) -> nn::Training {
    Value* losses = ops::binary_cross_entropy(logits(options, context, in), in["labels"]);
    return {.objectives = {nn::mean_of("loss", losses)}};
  };
  task.inference = [=](nn::Context& context, const nn::Values& in) -> nn::Values {
    return {{"probabilities", ops::sigmoid(logits(options, context, in))}};
  };
  return task;
}

train::EvaluatorMaker click_through_evaluator() {
  return [] { return std::make_unique<ClickThroughEvaluator>(); };
}

train::PredictionTextMaker click_through_text() {
  return [] { return std::make_unique<ClickThroughText>(); };
}

}  // namespace tessera::tasks
