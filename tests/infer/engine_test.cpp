// Engines: any number of rows, and several contexts over one set of weights.
#include "tessera/infer/engine.h"

#include <future>

#include <gtest/gtest.h>

#include "tessera/models/registry.h"
#include "tessera/train/checkpoint.h"

#include "infer/plan_case.h"
#include "support/counting_device.h"
#include "support/expect_error.h"
#include "support/temporary_folder.h"

namespace tessera::testing {
namespace {

using infer::Engine;

class Engines : public ::testing::Test {
 protected:
  std::filesystem::path plan(const std::vector<int64_t>& batches,
                             const std::shared_ptr<Device>& device = Device::reference()) const {
    write_plan(path(), batches, device);
    return path();
  }
  std::filesystem::path path() const { return folder_ / "network.plan"; }

 private:
  TemporaryFolder folder_;
};

TEST_F(Engines, RunAnyNumberOfRows) {
  const auto context = Engine(plan({2, 4})).context();
  for (const int64_t rows : {1, 2, 3, 4, 5, 6, 9}) {
    const auto outputs = context->run(inputs_of_rows(rows));
    EXPECT_EQ(outputs.size(), 2);
    // Each row is computed alone, in the reference's order.
    const auto expected = executable_at(rows, Device::reference())->run(inputs_of_rows(rows));
    EXPECT_TRUE(outputs.at("y").identical(expected.at("y"))) << rows;
    EXPECT_TRUE(outputs.at("table").identical(weights().at("table"))) << rows;
  }
}

TEST_F(Engines, RunTheSmallestSizeThatTakesTheRows) {
  const Engine engine(plan({2, 4, 8}));
  const auto& sizes = engine.plan().description().sizes;
  const auto context = engine.context();
  context->run(inputs_of_rows(3));
  EXPECT_ERROR(context->at(sizes[0]).output("y"), ErrorCode::invalid_argument, "has not run");
  EXPECT_EQ(context->at(sizes[1]).output("y").shape(), (Shape{4, 16}));
  EXPECT_ERROR(context->at(sizes[2]).output("y"), ErrorCode::invalid_argument, "has not run");
}

TEST_F(Engines, OfOneSizeTakeItsShapes) {
  const auto context = Engine(plan({3})).context();
  EXPECT_TRUE(context->run(inputs_of_rows(3)).contains("y"));
  EXPECT_ERROR(context->run(inputs_of_rows(2)), ErrorCode::invalid_argument, "'x'", "fp32[3, 8]");
}

TEST_F(Engines, RefuseOtherInputs) {
  const auto context = Engine(plan({2, 4})).context();
  auto inputs = inputs_of_rows(3);
  inputs["shft"] = inputs.at("shift");
  EXPECT_ERROR(context->run(inputs), ErrorCode::invalid_argument, "no input 'shft'", "'shift'");
  inputs.erase("shift");
  inputs.erase("shft");
  EXPECT_ERROR(context->run(inputs), ErrorCode::invalid_argument, "'shift' (fp32[16]) is missing");
  inputs = inputs_of_rows(3);
  inputs["shift"] = Tensor(DataType::fp32, {15});
  EXPECT_ERROR(context->run(inputs), ErrorCode::invalid_argument, "'shift'", "fp32[15]");
  inputs = inputs_of_rows(3);
  inputs["x"] = Tensor(DataType::fp32, {3, 9});
  EXPECT_ERROR(context->run(inputs), ErrorCode::invalid_argument, "fp32[batch, 8]", "fp32[3, 9]");
  inputs["x"] = Tensor(DataType::fp32, {0, 8});
  EXPECT_ERROR(context->run(inputs), ErrorCode::invalid_argument, "no rows");
}

TEST_F(Engines, RunOnTheirOwnDevice) {
  EXPECT_ERROR(Engine(plan({1}), Device::cpu()), ErrorCode::unsupported, "'reference', this is 'cpu'");
  EXPECT_EQ(Engine(plan({1})).device()->description().name, "reference");
}

TEST_F(Engines, ContextsShareTheWeights) {
  const auto device = std::make_shared<CountingDevice>();
  const Engine engine(plan({2, 4}, device), device);
  const int64_t weight_bytes = device->live_bytes();
  EXPECT_EQ(weight_bytes, 16 * 8 * 4 + 5);
  const auto first = engine.context();
  const int64_t context_bytes = device->live_bytes() - weight_bytes;
  const auto second = engine.context();
  EXPECT_EQ(device->live_bytes(), weight_bytes + 2 * context_bytes);
  // Its values between nodes, at batch 4: two of 16 numbers a row.
  EXPECT_LE(context_bytes, 2 * 4 * 16 * 4);
}

// Those of kernels that want them packed, too: the second context finds them.
TEST_F(Engines, ContextsRunAtOnce) {
  const Engine engine(plan({2, 8}, Device::cpu()));
  const auto work = [&](int64_t rows) {
    const auto context = engine.context();
    Tensor first = context->run(inputs_of_rows(rows)).at("y");
    for (int i = 0; i < 50; ++i) {
      if (!context->run(inputs_of_rows(rows)).at("y").identical(first)) return Tensor();
    }
    return first;
  };
  auto one = std::async(std::launch::async, work, 2);
  auto other = std::async(std::launch::async, work, 8);
  EXPECT_TRUE(one.get().identical(executable_at(2, Device::cpu())->run(inputs_of_rows(2)).at("y")));
  EXPECT_TRUE(other.get().identical(executable_at(8, Device::cpu())->run(inputs_of_rows(8)).at("y")));
}

// Folded norms, packed weights, kernels of several kinds: all bits are those of the network itself.
TEST_F(Engines, OfAResidualNetworkGiveItsBits) {
  const models::Model model =
      models::create("resnet_small", {.classes = 10, .image_size = 32, .channels = 3});
  const auto device = Device::cpu();
  const auto starting_value = [&](const std::string& name) -> std::optional<Tensor> {
    for (const nn::Variable& variable : models::build(model, 1).variables) {
      if (variable.name == name) return train::starting_value(variable, 1);
    }
    return std::nullopt;
  };
  std::map<int64_t, std::unique_ptr<Executable>> networks;
  infer::PlanBuilder builder("resnet_small", device->description(), frozen());
  for (const int64_t batch : {1, 4}) {
    networks[batch] = compile(*models::build(model, batch).graph, device, frozen());
    networks[batch]->load(starting_value);
    builder.add(batch, *networks[batch]);
  }
  builder.write(path());
  const auto context = Engine(path(), device).context();
  for (const int64_t batch : {1, 4}) {
    const std::map<std::string, Tensor> images = {
        {"images", random_tensor(DataType::fp32, {batch, 32, 32, 3}, -1, 1, 5)}};
    EXPECT_TRUE(context->run(images).at("logits").identical(networks[batch]->run(images).at("logits")));
  }
}

TEST_F(Engines, ContextsOutliveTheirEngine) {
  std::unique_ptr<infer::Context> context;
  {
    const Engine engine(plan({2}));
    context = engine.context();
  }
  EXPECT_EQ(context->run(inputs_of_rows(2)).at("y").shape(), (Shape{2, 16}));
}

}  // namespace
}  // namespace tessera::testing
