// Whole networks as the compiler may run them: fused or not, planned or not, once or twice.
#include <gtest/gtest.h>

#include "models/golden_network.h"
#include "support/compare.h"
#include "support/training_step.h"

namespace tessera::testing {
namespace {

struct Results {
  std::map<std::string, Tensor> outputs;
  std::map<std::string, Tensor> variables;  // after the run
};

struct Compilation {
  bool passes = true;
  bool planned = true;
};

// A network or training step with what it takes, run twice from one start on memory that is poisoned once
// free.
class Subject {
 public:
  Subject(models::Model model, bool training) : training_(training) {
    const int64_t size = model.options.image_size;
    inputs_["images"] = models::formula::images("input", {kBatch, size, size, model.options.channels});
    if (training) {
      train::StepGraph step =
          training_step(model, {.batch = kBatch, .optimizer = optim::sgd({.momentum = 0.9})});
      graph_ = std::move(step.graph);
      list_ = std::move(step.variables);
      inputs_["labels"] = models::formula::labels("labels", kBatch, model.options.classes);
      inputs_["learning_rate"] = Tensor::scalar(DataType::fp32, 0.01);
    } else {
      models::Network network = models::build(model, kBatch);
      graph_ = std::move(network.graph);
      list_ = std::move(network.variables);
    }
    make_start(models::build(model, 1).variables);
  }

  Results run(const Compilation& how) const {
    CompileOptions options;
    options.passes.frozen = how.passes && !training_;
    options.pipeline.verify = true;
    options.plan_memory = how.planned;
    options.poison_freed = how.planned;
    if (!how.passes) {
      for (const Pass& pass : pipeline(options.passes)) options.pipeline.disabled.insert(pass.name);
    }
    const auto executable = compile(*graph_, Device::cpu(), options);
    auto variables = std::make_shared<Variables>(Device::cpu());
    restart(*variables);
    executable->bind(variables);
    Results first = results(*executable, *variables);
    if (training_) restart(*variables);
    expect_identical(first, results(*executable, *variables), "run twice: ");
    return first;
  }

  // The largest among the kernels that the tuner may choose from.
  double rounding_amplification() const {
    const std::shared_ptr<Device> device = Device::cpu();
    double largest = 1;
    for (const auto& node : graph_->nodes()) {
      for (const KernelCandidate& candidate : device->candidates(*node))
        largest = std::max(largest, candidate.rounding_amplification);
    }
    return largest;
  }

  static void expect_identical(const Results& a, const Results& b, const std::string& where) {
    for (const auto& [name, tensor] : a.outputs)
      EXPECT_TRUE(tensor.identical(b.outputs.at(name))) << where << name;
    for (const auto& [name, tensor] : a.variables)
      EXPECT_TRUE(tensor.identical(b.variables.at(name))) << where << name;
  }

 private:
  static constexpr int64_t kBatch = 2;

  // The formula would take seconds for the hundred million weights of VGG's classifier.
  void make_start(const std::vector<nn::Variable>& network) {
    constexpr int64_t kLarge = 4 << 20;
    std::vector<nn::Variable> small;
    for (const nn::Variable& variable : network) {
      const int64_t count = element_count(variable.shape);
      if (count <= kLarge) {
        small.push_back(variable);
      } else {
        start_[variable.name] = Tensor::full(DataType::fp32, variable.shape, 1 / std::sqrt(count));
      }
    }
    start_.merge(models::formula::weights(small));
    for (const nn::Variable& variable : list_) {  // the state of the optimizer
      start_.try_emplace(variable.name, Tensor(variable.data_type, variable.shape));
    }
  }
  void restart(Variables& variables) const {
    for (const auto& [name, value] : start_) variables.set(name, value);
  }
  Results results(Executable& executable, const Variables& variables) const {
    Results result{executable.run(inputs_), {}};
    if (!training_) return result;
    for (const nn::Variable& variable : list_) result.variables[variable.name] = variables.get(variable.name);
    return result;
  }

  bool training_;
  std::unique_ptr<Graph> graph_;
  std::vector<nn::Variable> list_;
  std::map<std::string, Tensor> inputs_;
  std::map<std::string, Tensor> start_;
};

// The norm of the difference as a share of the norm of what is expected.
double distance(const Tensor& actual, const Tensor& expected) {
  double difference = 0;
  double norm = 0;
  for (int64_t i = 0; i < expected.size(); ++i) {
    difference += std::pow(actual.at(i) - expected.at(i), 2);
    norm += std::pow(expected.at(i), 2);
  }
  return std::sqrt(difference / (norm + 1e-20));
}

struct Case {
  std::string name;
  int64_t image_size;
  bool training;
};

class Compilations : public ::testing::TestWithParam<Case> {};

TEST_P(Compilations, ComputeTheSame) {
  const auto& [name, size, training] = GetParam();
  const Subject subject(golden_model(name, 10, size), training);
  const Results fused = subject.run({});
  Subject::expect_identical(fused, subject.run({.planned = false}), "unplanned beside planned: ");
  const Results plain = subject.run({.passes = false});
  // Relative to the norm of a tensor, in which errors of fp32 (6e-8) add up like random steps over some tens
  // of layers of sums that are off by some tens of units each.
  const double tolerance = 1e-5 * subject.rounding_amplification();
  for (const auto& [output, tensor] : fused.outputs)
    EXPECT_LT(distance(tensor, plain.outputs.at(output)), tolerance) << output;
  for (const auto& [variable, tensor] : fused.variables)
    EXPECT_LT(distance(tensor, plain.variables.at(variable)), tolerance) << variable;
}

INSTANTIATE_TEST_SUITE_P(Models, Compilations,
                         ::testing::Values(Case{"resnet18", 32, true}, Case{"resnext50", 32, false},
                                           Case{"vgg11_bn", 32, false}),
                         [](const auto& test) {
                           return test.param.name + (test.param.training ? "_training" : "_inference");
                         });

}  // namespace
}  // namespace tessera::testing
