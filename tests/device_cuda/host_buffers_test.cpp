// Inputs and outputs in pinned memory, and runs that overlap their copies.
#include "device/cuda/runtime/host_buffers.h"

#include <algorithm>
#include <set>

#include "tessera/models/formula.h"
#include "tessera/models/registry.h"
#include "tessera/train/checkpoint.h"

#include "device_cuda/cuda_case.h"
#include "support/training_step.h"

namespace tessera::testing {
namespace {

std::vector<int32_t> numbers(int64_t count, int32_t first) {
  std::vector<int32_t> values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i) values[i] = first + static_cast<int32_t>(i);
  return values;
}

// Memory that is free again as soon as load() returns.
std::shared_ptr<void> unpinned(std::vector<int32_t>& values) {
  return {values.data(), [](void*) {}};
}

TEST(CudaHostBuffers, ShowWhatWasLoadedLastAndNotBefore) {
  TESSERA_NEEDS_GPU();
  const std::shared_ptr<Queue> queue = gpu_or_null()->queue();
  for (const int64_t count : {int64_t{1}, int64_t{1000}, int64_t{10'000'000}}) {
    const int64_t bytes = count * 4;
    const auto input = queue->input_buffer(bytes);
    const auto output = queue->output_buffer(bytes);
    const auto expect_present = [&](int32_t first) {
      output->begin(input->memory());
      const std::shared_ptr<void> memory = output->finish();
      const auto* values = static_cast<const int32_t*>(memory.get());
      EXPECT_TRUE(std::vector<int32_t>(values, values + count) == numbers(count, first)) << first;
    };
    for (int32_t round = 0; round < 5; ++round) {
      // The host's memory may change as soon as load() returns.
      std::vector<int32_t> host = numbers(count, round);
      input->load(unpinned(host));
      std::fill(host.begin(), host.end(), -1);
      if (round > 0) expect_present(round - 1);
      input->show();
      expect_present(round);
    }
    for (int32_t round = 10; round < 15; ++round) {
      std::vector<int32_t> host = numbers(count, round);
      input->load(unpinned(host));
    }
    input->show();
    expect_present(14);
  }
}

// The memory goes back to the pool while copies are under way.
TEST(CudaHostBuffers, MayBeDroppedAtAnyTime) {
  TESSERA_NEEDS_GPU();
  const auto device = gpu_or_null();
  const std::shared_ptr<Queue> queue = device->queue();
  std::vector<int32_t> host = numbers(10'000'000, 1);
  const auto bytes = static_cast<int64_t>(host.size() * 4);
  for (int round = 0; round < 10; ++round) {
    const auto input = queue->input_buffer(bytes);
    input->load(unpinned(host));
    if (round % 2 == 0) input->show();
    queue->output_buffer(bytes)->begin(input->memory());
  }
  const auto block = device->allocate(bytes);
  std::vector<int32_t> read(host.size(), 1);
  device->copy_to_host(read.data(), block.get(), bytes);
  EXPECT_TRUE(std::all_of(read.begin(), read.end(), [](int32_t value) { return value == 0; }));
}

// Outputs that are held stay as they are, also after the queue that made them; what is let go of is used
// again, and of many that are held no more than a few take pinned memory.
TEST(CudaHostBuffers, OutputsBelongToWhoeverHoldsThem) {
  TESSERA_NEEDS_GPU();
  constexpr int64_t kCount = 100'000;
  std::vector<std::shared_ptr<void>> held;
  {
    const std::shared_ptr<Queue> queue = gpu_or_null()->queue();
    const auto input = queue->input_buffer(kCount * 4);
    const auto output = queue->output_buffer(kCount * 4);
    const auto run = [&](int32_t first) {
      std::vector<int32_t> host = numbers(kCount, first);
      input->load(unpinned(host));
      input->show();
      output->begin(input->memory());
      return output->finish();
    };
    const void* first = run(-1).get();
    EXPECT_EQ(run(-2).get(), first);
    for (int32_t round = 0; round < 9; ++round) held.push_back(run(round));
  }
  std::set<const void*> places;
  for (int32_t round = 0; round < 9; ++round) {
    const auto* values = static_cast<const int32_t*>(held[static_cast<size_t>(round)].get());
    EXPECT_TRUE(std::vector<int32_t>(values, values + kCount) == numbers(kCount, round)) << round;
    places.insert(values);
  }
  EXPECT_EQ(places.size(), held.size());
}

// What is pinned is sent from where it lies, and kept until it has arrived.
TEST(CudaHostBuffers, SendWhatIsPinnedFromWhereItLies) {
  TESSERA_NEEDS_GPU();
  const auto device = gpu_or_null();
  const std::shared_ptr<Queue> queue = device->queue();
  constexpr int64_t kCount = 10'000'000;
  const auto input = queue->input_buffer(kCount * 4);
  const auto output = queue->output_buffer(kCount * 4);
  std::weak_ptr<void> given;
  for (int32_t round = 0; round < 5; ++round) {
    std::shared_ptr<void> pinned = device->allocate_pinned(kCount * 4);
    const std::vector<int32_t> values = numbers(kCount, round);
    std::copy(values.begin(), values.end(), static_cast<int32_t*>(pinned.get()));
    input->load(pinned);
    given = pinned;
    EXPECT_EQ(pinned.use_count(), 2);
    pinned.reset();
    input->show();
    output->begin(input->memory());
    const std::shared_ptr<void> memory = output->finish();
    const auto* present = static_cast<const int32_t*>(memory.get());
    EXPECT_TRUE(std::vector<int32_t>(present, present + kCount) == values) << round;
  }
  std::vector<int32_t> host = numbers(kCount, 0);
  for (int round = 0; round < 2; ++round) input->load(unpinned(host));
  EXPECT_TRUE(given.expired());
}

// Steps on batches that differ, one submitted ahead, give the bits of steps that are waited for.
TEST(CudaHostBuffers, SubmittedStepsAreThoseThatAreWaitedFor) {
  TESSERA_NEEDS_GPU();
  constexpr int64_t kBatch = 64;
  constexpr int kSteps = 12;
  const models::Model model = models::create("resnet18", {.classes = 10, .image_size = 64});
  const train::StepGraph step = training_step(model, {.batch = kBatch});
  const auto device = gpu_or_null();
  const auto losses = [&](bool ahead) {
    const auto executable = compile(*step.graph, device);
    auto variables = std::make_shared<Variables>(device);
    train::initialize_variables(*variables, step.variables, 1);
    executable->bind(variables);
    std::vector<double> result;
    for (int i = 0; i < kSteps; ++i) {
      const std::string name = std::to_string(i);
      executable->submit({{"images", models::formula::images(name, model.input_type(kBatch).static_shape())},
                          {"labels", models::formula::labels(name, kBatch, 10)},
                          {"learning_rate", Tensor::scalar(DataType::fp32, 0.01 * (i + 1))}});
      if (!ahead || i > 0) result.push_back(loss_of(executable->receive()));
    }
    if (ahead) result.push_back(loss_of(executable->receive()));
    return result;
  };
  const std::vector<double> expected = losses(false);
  EXPECT_EQ(losses(true), expected);
  EXPECT_EQ(losses(true), expected);
}

}  // namespace
}  // namespace tessera::testing
