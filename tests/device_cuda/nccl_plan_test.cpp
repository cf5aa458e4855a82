// Collectives by NCCL as they are planned for a card that is not there, and who may use it.
#include <algorithm>
#include <set>

#include "tessera/compile/device_collectives.h"
#include "tessera/ops/functions.h"

#include "device/cuda/communication/nccl_kernel.h"
#include "device/cuda/communication/rank_card.h"
#include "device_cuda/cuda_case.h"
#include "device_cuda/plan_case.h"

namespace tessera::testing {
namespace {

std::unique_ptr<Executable> planned_step(const std::string& network, int64_t ranks, Precision precision,
                                         std::optional<int64_t> bucket_bytes = {}) {
  const train::StepGraph step = train::build_training_step(
      tasks::image_classification(models::create(network)),
      {.sizes = {{"batch", 32}},
       .phase = {.groups = {{.optimizer = optim::sgd({.learning_rate = 0.1, .momentum = 0.9})}}},
       .precision = precision,
       .ranks = {.rank = 0, .count = ranks}});
  return planned(*step.graph, {.precision = precision, .bucket_bytes = bucket_bytes});
}

bool is_all_reduce(const NodeReport& node) {
  return node.operator_name == "all_reduce";
}

// Places of the collectives, and of the last product of the step.
struct Places {
  std::vector<size_t> collectives;
  size_t last_product = 0;
};

Places places_of(const Executable& executable) {
  Places places;
  for (size_t i = 0; i < executable.nodes().size(); ++i) {
    const NodeReport& node = executable.nodes()[i];
    if (is_all_reduce(node)) places.collectives.push_back(i);
    if (node.operator_name.find("convolution") != std::string::npos) places.last_product = i;
  }
  return places;
}

TEST(NcclPlan, ExchangesGradientsWhileOthersAreMade) {
  for (const Precision precision : {Precision::fp16, Precision::bf16, Precision::fp32}) {
    SCOPED_TRACE(to_string(precision));
    const auto executable = planned_step("resnet50", 2, precision);
    for (const NodeReport& node : executable->nodes()) {
      EXPECT_EQ(node.kernel == "nccl", is_all_reduce(node)) << node.name;
      EXPECT_EQ(node.lane.empty(), !is_all_reduce(node)) << node.name;
    }
    const Places places = places_of(*executable);
    // 97 MiB of gradients in buckets of 25 MiB, small ones at both ends, and one of measures and states.
    ASSERT_GE(places.collectives.size(), 7u);
    // All but the last bucket are under way before the last gradient of a weight is begun.
    const auto begun = std::count_if(places.collectives.begin(), places.collectives.end(),
                                     [&](size_t place) { return place < places.last_product; });
    EXPECT_EQ(begun, std::ssize(places.collectives) - 1);
  }
}

TEST(NcclPlan, ExchangesAllAtOnceWhereItIsTold) {
  const auto executable = planned_step("resnet50", 2, Precision::fp16, 0);
  EXPECT_EQ(places_of(*executable).collectives.size(), 2u);
}

TEST(NcclPlan, IsNoneOfOneRank) {
  EXPECT_EQ(count_nodes(*planned_step("resnet18", 1, Precision::fp16), is_all_reduce), 0u);
}

// One launch for the scaling of all gradients of a bucket, not one for each; and they make one piece of
// memory without being copied.
TEST(NcclPlan, ScalesTheGradientsOfABucketTogetherInOnePiece) {
  const auto is_launched = [](const NodeReport& node) { return node.kernel != "alias"; };
  const auto moves = [](const NodeReport& node) {
    return node.operator_name == "concat" || node.operator_name == "split" || node.operator_name == "reshape";
  };
  const auto alone = planned_step("resnet50", 1, Precision::fp16);
  const auto of_two = planned_step("resnet50", 2, Precision::fp16);
  EXPECT_LT(count_nodes(*of_two, is_launched), count_nodes(*alone, is_launched) + 30);
  // But for the measures: scalars, and the weight of the objective.
  for (const NodeReport& node : of_two->nodes()) {
    if (moves(node) && is_launched(node)) {
      EXPECT_LT(node.bytes, 64) << node.name;
    }
  }
  EXPECT_GT(count_nodes(*of_two, [](const NodeReport& node) { return node.operator_name == "concat"; }), 4u);
}

std::string refusal(const std::function<Value*(Value* x)>& build, DataType type) {
  Graph graph;
  Value* x = graph.add_input(InputRole::input, "x", {type, {6}});
  const Node* node = build(x)->producer();
  const auto device = Device::open("cuda:plan-h100");
  return device->extension<DeviceCollectives>()->refusal(*node, nullptr);
}

TEST(NcclPlan, LeavesToTheHostWhatNcclDoesOtherwise) {
  const auto reduced = [](const std::string& reduction) {
    return [reduction](Value* x) { return ops::all_reduce(x, {.ranks = 2}, reduction); };
  };
  const auto gathered = [](Value* x) { return ops::all_gather(x, {.ranks = 2}); };
  for (const DataType type : {DataType::fp32, DataType::fp64, DataType::fp16, DataType::bf16}) {
    EXPECT_EQ(refusal(reduced("sum"), type), "");
    EXPECT_EQ(refusal(reduced("mean"), type), "");
    EXPECT_EQ(refusal(reduced("maximum"), type), "NCCL's maximum loses a NaN");
    EXPECT_EQ(refusal(reduced("minimum"), type), "NCCL's minimum loses a NaN");
  }
  EXPECT_EQ(refusal(reduced("maximum"), DataType::int32), "");
  EXPECT_EQ(refusal(gathered, DataType::boolean), "");
}

// Where it is, with all of its functions that are used.
TEST(NcclPlan, NamesItsLibraryOrWhatWasLookedFor) {
  const auto device = Device::open("cuda:plan-h100");
  try {
    EXPECT_TRUE(device->extension<DeviceCollectives>()->collective_library().starts_with("NCCL 2."));
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unsupported);
    EXPECT_NE(std::string(error.what()).find("libnccl.so.2 cannot be loaded"), std::string::npos)
        << error.what();
  }
}

// On a card that is there a group must be connected.
TEST(NcclPlan, TakesNoGroupThatIsNotConnected) {
  TESSERA_NEEDS_GPU();
  Graph graph;
  Value* x = graph.add_input(InputRole::input, "x", {DataType::fp32, {6}});
  const Node* node = ops::all_reduce(x, {.ranks = 2})->producer();
  EXPECT_EQ(gpu_or_null()->extension<DeviceCollectives>()->refusal(*node, nullptr),
            "the GPUs of its group are not connected");
}

cuda::RankCard card(char gpu, int32_t version) {
  cuda::RankCard result;
  result.gpu.fill(gpu);
  result.version = version;
  return result;
}

TEST(RankCards, LetRanksWithAGpuAndTheSameNcclConnect) {
  const std::vector<cuda::RankCard> cards{card('a', 22809), card('b', 22809), card('c', 22809)};
  EXPECT_EQ(cuda::refusal_of(cards), "");
}

TEST(RankCards, NameWhoCannotConnect) {
  std::vector<cuda::RankCard> cards{card('a', 22809), card('b', 22809), card('a', 22809)};
  EXPECT_EQ(cuda::refusal_of(cards), "ranks 0 and 2 share one GPU");
  cards[1].version = 22700;
  EXPECT_EQ(cuda::refusal_of(cards), "rank 0 has NCCL 22809 and rank 1 has 22700");
  cards[0].version = 0;
  cards[0].explain("libnccl.so.2 cannot be loaded");
  EXPECT_EQ(cuda::refusal_of(cards), "rank 0 has no NCCL: libnccl.so.2 cannot be loaded");
  cards[0].explain(std::string(10'000, 'x'));
  EXPECT_EQ(std::string(cards[0].why.data()), std::string(cards[0].why.size() - 1, 'x'));
}

}  // namespace
}  // namespace tessera::testing
