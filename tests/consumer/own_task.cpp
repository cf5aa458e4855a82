// Somebody's own workload: a line through points, trained by a recipe that names it.
#include <cstdio>
#include <filesystem>

#include <tessera/tessera.h>

namespace ts = tessera;

namespace {

constexpr int64_t kBatches = 8;

// Points on y = 2x + 1, as many in a batch as the recipe says.
class Points : public ts::data::Source {
 public:
  explicit Points(int64_t count) : count_(count) {}
  std::vector<ts::Field> fields() const override {
    const ts::TensorType column{ts::DataType::fp32, {ts::Dimension::symbol("points"), 1}};
    return {{"x", column}, {"y", column}};
  }
  std::vector<ts::SymbolBindings> sizes() const override { return {{{"points", count_}}}; }
  std::optional<int64_t> batches(int64_t, int64_t) const override { return kBatches; }
  std::unique_ptr<ts::data::Stream> open(const ts::data::Cursor& from,
                                         const ts::data::Partition& partition) const override {
    return open_into(nullptr, from, partition);
  }
  std::unique_ptr<ts::data::Stream> open_into(std::shared_ptr<const ts::BatchMemory> memory,
                                              const ts::data::Cursor& from,
                                              const ts::data::Partition&) const override {
    return std::make_unique<Walk>(count_, from, std::move(memory));
  }

 private:
  class Walk : public ts::data::Stream {
   public:
    Walk(int64_t count, const ts::data::Cursor& from, std::shared_ptr<const ts::BatchMemory> memory)
        : count_(count), place_(from), memory_(std::move(memory)) {}
    std::optional<ts::data::Batch> next() override {
      if (place_.batch == kBatches) return std::nullopt;
      ts::Tensor x = column();
      ts::Tensor y = column();
      const ts::Random random(1, static_cast<uint64_t>(place_.batch));
      for (int64_t i = 0; i < count_; ++i) {
        x.set(i, random.normal(static_cast<uint64_t>(i)));
        y.set(i, 2 * x.at(i) + 1);
      }
      ++place_.batch;
      return ts::data::Batch{
          .fields = {{"x", x}, {"y", y}}, .sizes = {{"points", count_}}, .samples = count_, .after = place_};
    }

   private:
    // Where a GPU takes it from, if the trainer says where that is.
    ts::Tensor column() const {
      const ts::Shape shape{count_, 1};
      return memory_ == nullptr ? ts::Tensor(ts::DataType::fp32, shape)
                                : memory_->tensor(ts::DataType::fp32, shape);
    }

    int64_t count_;
    ts::data::Cursor place_;
    std::shared_ptr<const ts::BatchMemory> memory_;
  };
  int64_t count_;
};

class LargestError : public ts::train::Evaluator {
 public:
  void add(const ts::data::Batch& batch, const ts::Feeds& outputs) override {
    for (int64_t i = 0; i < batch.samples; ++i) {
      largest_ = std::max(largest_, std::abs(outputs.at("y").at(i) - batch.fields.at("y").at(i)));
    }
  }
  ts::train::Numbers results() const override { return {{"largest_error", largest_}}; }

 private:
  double largest_ = 0;
};

ts::train::Workload line(const ts::Options& settings) {
  const auto points = std::make_shared<Points>(settings.integer("train.batch"));
  const auto start = ts::nn::constant(settings.real("model.start"));
  const auto height = [start](ts::nn::Context& context, const ts::nn::Values& in) {
    return ts::nn::linear(context, "line", in["x"], 1, {.weight = start});
  };
  ts::nn::Task task{.name = "line", .network = "line", .inputs = points->fields(), .samples = "points"};
  task.metrics = {{.name = "largest_error"}, {.name = "error"}};
  task.training = [=](ts::nn::Context& context, const ts::nn::Values& in) -> ts::nn::Training {
    ts::Value* difference = height(context, in) - in["y"];
    return {.objectives = {ts::nn::mean_of("error", ts::ops::square(difference))}};
  };
  task.inference = [=](ts::nn::Context& context, const ts::nn::Values& in) -> ts::nn::Values {
    return {{"y", height(context, in)}};
  };
  return {.task = task,
          .data = "points",
          .training = [points] { return points; },
          .test = [points]() -> ts::train::TestSet {
            return {points, [] { return std::make_unique<LargestError>(); }};
          }};
}

const ts::train::TaskRegistration kLine(
    {.name = "line",
     .documentation = "A line through points.",
     .sections = {{"model", {{.key = "start", .value = 0.0, .documentation = "First slope"}}}},
     .create = line});

}  // namespace

int main(int count, char** arguments) {
  const auto folder = std::filesystem::temp_directory_path() / "tessera_own_task";
  std::filesystem::remove_all(folder);
  const ts::recipe::Recipe recipe = ts::recipe::parse_recipe(
      "task.name = 'line'\nmodel.start = -1\ntrain = {epochs = 20, batch = 16}\noptimizer.learning_rate = "
      "0.1",
      "line", {std::string("train.device=") + (count > 1 ? arguments[1] : "auto")});
  const ts::recipe::RunResult result = ts::recipe::run_recipe(recipe, {.folder = folder, .quiet = true});
  const double error = result.last_evaluations().front().results.at("largest_error");
  const bool reported = std::filesystem::exists(folder / "report.html");
  std::filesystem::remove_all(folder);
  std::printf("largest error %g\n", error);
  return error < 0.01 && reported ? 0 : 1;
}
