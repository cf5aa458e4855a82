// Several executables on one GPU, each on its queue, and values that stay there.
#include <thread>

#include "tessera/models/formula.h"
#include "tessera/models/registry.h"
#include "tessera/train/checkpoint.h"

#include "device_cuda/cuda_case.h"
#include "support/random_tensor.h"
#include "support/training_step.h"

namespace tessera::testing {
namespace {

constexpr int64_t kBatch = 16;
constexpr int kSteps = 8;

// The losses of some steps of a small network, recorded from the second on, and a weight after them.
std::vector<double> train(const std::shared_ptr<Device>& device, uint64_t seed) {
  const models::Model model = models::create("resnet18", {.classes = 10, .image_size = 64});
  const train::StepGraph step = training_step(model, {.batch = kBatch});
  const auto executable = compile(*step.graph, device);
  const auto variables = std::make_shared<Variables>(device);
  train::initialize_variables(*variables, step.variables, seed);
  executable->bind(variables);
  std::vector<double> results;
  for (int i = 0; i < kSteps; ++i) {
    const std::string name = fmt::format("{} {}", seed, i);
    results.push_back(loss_of(
        executable->run({{"images", models::formula::images(name, model.input_type(kBatch).static_shape())},
                         {"labels", models::formula::labels(name, kBatch, 10)},
                         {"learning_rate", Tensor::scalar(DataType::fp32, 0.01)}})));
  }
  for (const double value : variables->get("fc.weight").to_doubles()) results.push_back(value);
  return results;
}

// Compiling, binding, recording and running, while the other threads do the same.
TEST(CudaQueues, ThreadsWithExecutablesOfTheirOwnGetTheBitsOfOneAfterTheOther) {
  TESSERA_NEEDS_GPU();
  constexpr size_t kThreads = 3;
  const auto device = gpu_or_null();
  std::vector<std::vector<double>> expected;
  for (size_t i = 0; i < kThreads; ++i) expected.push_back(train(device, i));
  for (int round = 0; round < 2; ++round) {
    std::vector<std::vector<double>> actual(kThreads);
    std::vector<std::thread> threads;
    for (size_t i = 0; i < kThreads; ++i) threads.emplace_back([&, i] { actual[i] = train(device, i); });
    for (std::thread& thread : threads) thread.join();
    for (size_t i = 0; i < kThreads; ++i) EXPECT_EQ(actual[i], expected[i]) << "thread " << i;
  }
}

// Big enough that the order is not kept by chance.
constexpr int64_t kElements = int64_t{1} << 26;

std::unique_ptr<Graph> elementwise(const char* name, const char* operation) {
  return parse_graph(
      fmt::format("graph {0}(input %x: fp32[{1}], state %s: fp32[{1}]) {{\n"
                  "  %next = {2}(%s, %x)\n  output y = %next\n  update %s = %next\n}}\n",
                  name, kElements, operation));
}

// Two queues over one state: each run sees what the ones given before it have left.
TEST(CudaQueues, AreOrderedByTheVariablesThatTheyUpdate) {
  TESSERA_NEEDS_GPU();
  const auto device = gpu_or_null();
  const auto variables = std::make_shared<Variables>(device);
  variables->set("s", Tensor(DataType::fp32, {kElements}));
  const auto adds = compile(*elementwise("adds", "add"), device);
  const auto doubles = compile(*elementwise("doubles", "multiply"), device);
  for (const auto& executable : {adds.get(), doubles.get()}) {
    executable->bind(variables);
    executable->fetch("y", Executable::Fetch::device);
  }
  adds->stage({{"x", Tensor::full(DataType::fp32, {kElements}, 1)}});
  doubles->stage({{"x", Tensor::full(DataType::fp32, {kElements}, 2)}});
  double expected = 0;
  for (int run = 0; run < 10; ++run) {
    adds->submit({});
    doubles->submit({});
    adds->receive();
    doubles->receive();
    expected = 2 * (expected + 1);
  }
  const Tensor last = variables->get("s");
  for (const int64_t index : {int64_t{0}, kElements / 2, kElements - 1}) EXPECT_EQ(last.at(index), expected);
}

TEST(CudaQueues, GiveOutputsToOthersWithoutTheHost) {
  TESSERA_NEEDS_GPU();
  const auto device = gpu_or_null();
  const auto graph = parse_graph(
      fmt::format("graph g(input %x: fp32[{0}]) {{\n  %y = add(%x, %x)\n  output y = %y\n}}\n", kElements));
  const auto first = compile(*graph, device);
  const auto second = compile(*graph, device);
  for (const auto& executable : {first.get(), second.get()}) {
    executable->bind(std::make_shared<Variables>(device));
    executable->fetch("y", Executable::Fetch::device);
  }
  const DeviceTensor x = DeviceTensor::allocate(device, DataType::fp32, {kElements});
  first->stage({{"x", x}});
  for (int run = 1; run <= 6; ++run) {
    const Tensor value = Tensor::full(DataType::fp32, {kElements}, run);
    device->copy_from_host(x.memory(), value.raw(), x.bytes());
    first->run({});
    second->stage({{"x", first->output("y")}});
    second->run({});
    EXPECT_EQ(second->output("y").to_host().at(kElements - 1), 4.0 * run);
    // Other memory is another recording.
    const DeviceTensor other =
        DeviceTensor::from_host(device, Tensor::full(DataType::fp32, {kElements}, -run));
    second->stage({{"x", other}});
    second->run({});
    EXPECT_EQ(second->output("y").to_host().at(kElements - 1), -2.0 * run);
  }
}

// Sizes of one network, in turn: memory for the largest, the bits of sizes apart.
TEST(CudaQueues, SizesShareOneWorkspace) {
  TESSERA_NEEDS_GPU();
  const auto device = gpu_or_null();
  const models::Model model = models::create("resnet18", {.classes = 10, .image_size = 64});
  const auto losses = [&](const CompileOptions& options) {
    const auto variables = std::make_shared<Variables>(device);
    std::vector<std::unique_ptr<Executable>> executables;
    std::vector<double> results;
    for (int run = 0; run < 4; ++run) {
      for (const int64_t batch : {4, 16, 8}) {
        const auto index = static_cast<size_t>(batch == 4 ? 0 : batch == 16 ? 1 : 2);
        if (run == 0) {
          const train::StepGraph step = training_step(model, {.batch = batch});
          if (index == 0) train::initialize_variables(*variables, step.variables, 1);
          executables.push_back(compile(*step.graph, device, options));
          executables.back()->bind(variables);
        }
        const std::string name = std::to_string(run);
        results.push_back(loss_of(executables[index]->run(
            {{"images", models::formula::images(name, model.input_type(batch).static_shape())},
             {"labels", models::formula::labels(name, batch, 10)},
             {"learning_rate", Tensor::scalar(DataType::fp32, 0.01)}})));
      }
    }
    return results;
  };
  CompileOptions together;
  together.workspace = std::make_shared<Workspace>(device);
  EXPECT_EQ(losses(together), losses({}));
}

}  // namespace
}  // namespace tessera::testing
