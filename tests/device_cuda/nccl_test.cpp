// Collectives from GPU to GPU, whose ranks are threads: against the host's, recorded and not, in whole
// training steps, and when a rank fails.
#include <chrono>
#include <thread>

#include "tessera/ops/functions.h"
#include "tessera/train/trainer.h"

#include "device_cuda/cuda_case.h"
#include "support/compare.h"
#include "support/expect_error.h"
#include "support/random_tensor.h"
#include "support/ranks.h"
#include "train/tiny.h"

namespace tessera::testing {
namespace {

constexpr int64_t kRanks = 2;

std::shared_ptr<Device> gpu_of(int64_t rank) {
  return Device::open(fmt::format("cuda:{}", rank));
}

bool has_two_gpus() {
  static const bool found = gpu_or_null() != nullptr && opened_or_null([] { return gpu_of(1); }) != nullptr;
  return found;
}

// NCCL connects no two ranks on one GPU.
#define TESSERA_NEEDS_TWO_GPUS() \
  if (!has_two_gpus()) GTEST_SKIP() << "no two GPUs"

using Build = std::function<std::vector<Value*>(Value* x)>;

// Some collectives of one value.
struct Case {
  std::string what;
  Build build;
  DataType type = DataType::fp32;
  int64_t elements = 0;
  std::string kernel = "nccl";  // of all of them
};

// Of four runs, on other values each: on GPUs the first one is enqueued node by node, the others recorded.
constexpr uint64_t kRuns = 4;
using Results = std::vector<std::map<std::string, Tensor>>;

// Small numbers, so that sums are exact in every type.
Tensor numbers_of(int64_t rank, uint64_t run, DataType type, int64_t elements) {
  Tensor x(type, {elements});
  for (int64_t i = 0; i < elements; ++i)
    x.set(i, type == DataType::boolean
                 ? static_cast<double>((i + rank) % 2)
                 : static_cast<double>((7 * i + 3 * rank + static_cast<int64_t>(run)) % 11));
  return x;
}

void expect_kernel(const Executable& executable, const std::string& kernel) {
  for (const NodeReport& node : executable.nodes()) {
    if (node.kernel != "nccl" && node.kernel != "communicator") continue;
    EXPECT_EQ(node.kernel, kernel) << node.name;
    EXPECT_EQ(node.lane.empty(), kernel != "nccl") << node.name;
  }
}

Results results_of(const Case& one, const std::shared_ptr<Communicator>& communicator, bool on_gpu) {
  const std::shared_ptr<Device> device = on_gpu ? gpu_of(communicator->rank()) : Device::reference();
  Graph graph;
  const std::vector<Value*> outputs =
      one.build(graph.add_input(InputRole::input, "x", {one.type, {one.elements}}));
  for (size_t i = 0; i < outputs.size(); ++i) graph.add_output(fmt::format("y{}", i), outputs[i]);
  CompileOptions options;
  options.communicators[""] = communicator;
  const auto executable = compile(graph, device, options);
  if (on_gpu) expect_kernel(*executable, one.kernel);
  executable->bind(std::make_shared<Variables>(device));
  Results results;
  for (uint64_t run = 0; run < kRuns; ++run)
    results.push_back(
        executable->run({{"x", numbers_of(communicator->rank(), run, one.type, one.elements)}}));
  return results;
}

// Both ranks have on their GPUs what the host gives them, in every run.
void expect_the_hosts(const std::vector<Case>& cases) {
  on_ranks(kRanks, [&](const std::shared_ptr<Communicator>& communicator) {
    for (const Case& one : cases) {
      const Results expected = results_of(one, communicator, false);
      const Results actual = results_of(one, communicator, true);
      for (size_t run = 0; run < kRuns; ++run) {
        for (const auto& [name, tensor] : expected[run]) {
          EXPECT_TRUE(actual[run].at(name).identical(tensor))
              << one.what << " of " << one.elements << " " << to_string(one.type) << ": " << name
              << " of rank " << communicator->rank() << " in run " << run;
        }
      }
    }
  });
}

const ops::RankGroup kAll{.ranks = kRanks};
constexpr int64_t kSizes[] = {2, 1002, 300'002};

// What a kernel makes is read by collectives, and a kernel reads what one of them gives.
std::vector<Value*> sums(Value* x) {
  Value* twice = ops::add(x, x);
  std::vector<Value*> results = ops::all_reduce({twice, x}, kAll);
  // Of two types at once.
  for (Value* sum : ops::all_reduce({x, ops::cast(twice, DataType::int32)}, kAll)) results.push_back(sum);
  const Node* parts = ops::apply("reduce_scatter", {x, twice}, {{"ranks", kRanks}});
  for (const auto& part : parts->outputs()) results.push_back(part.get());
  for (const int64_t root : {0, 1}) results.push_back(ops::reduce(twice, kAll, root));
  if (is_floating(x->data_type())) results.push_back(ops::all_reduce(twice, kAll, "mean"));
  results.push_back(ops::add(results.front(), x));
  return results;
}

std::vector<Value*> moves(Value* x) {
  std::vector<Value*> results{ops::all_gather(x, kAll)};
  const Node* both = ops::apply("all_gather", {x, ops::concat({x, x}, 0)}, {{"ranks", kRanks}});
  for (const auto& one : both->outputs()) results.push_back(one.get());
  for (const int64_t root : {0, 1}) results.push_back(ops::broadcast(x, kAll, root));
  return results;
}

TEST(Nccl, AddsUpWhatTheHostAddsUp) {
  TESSERA_NEEDS_TWO_GPUS();
  std::vector<Case> cases;
  for (const DataType type : {DataType::fp32, DataType::fp64, DataType::fp16, DataType::bf16, DataType::int8,
                              DataType::uint8, DataType::int32, DataType::int64}) {
    for (const int64_t elements : kSizes) cases.push_back({"sums", sums, type, elements});
  }
  expect_the_hosts(cases);
}

TEST(Nccl, FindsTheExtremaOfIntegersAndLeavesThoseOfOthersToTheHost) {
  TESSERA_NEEDS_TWO_GPUS();
  const Build extrema = [](Value* x) {
    return std::vector{ops::all_reduce(x, kAll, "maximum"), ops::all_reduce(x, kAll, "minimum")};
  };
  expect_the_hosts({{"extrema", extrema, DataType::int32, 1002},
                    {"extrema", extrema, DataType::fp32, 1002, "communicator"}});
}

TEST(Nccl, MovesEveryType) {
  TESSERA_NEEDS_TWO_GPUS();
  std::vector<Case> cases;
  for (const DataType type :
       {DataType::fp32, DataType::fp16, DataType::int8, DataType::int64, DataType::boolean}) {
    for (const int64_t elements : kSizes) cases.push_back({"moves", moves, type, elements});
  }
  expect_the_hosts(cases);
}

// Sums that are rounded: the same on both ranks, in every run, recorded or not.
TEST(Nccl, GivesTheSameBitsInAllRunsAndOnAllRanks) {
  TESSERA_NEEDS_TWO_GPUS();
  std::vector<std::vector<Tensor>> sums(kRanks);
  on_ranks(kRanks, [&](const std::shared_ptr<Communicator>& communicator) {
    const auto rank = static_cast<size_t>(communicator->rank());
    const Tensor numbers = random_tensor(DataType::fp32, {100'003}, -1, 1, rank);
    Graph graph;
    Value* x = graph.add_input(InputRole::input, "x", {DataType::fp32, {100'003}});
    graph.add_output("y", ops::all_reduce(ops::exp(x), kAll));
    CompileOptions options;
    options.communicators[""] = communicator;
    for (int executables = 0; executables < 2; ++executables) {
      const auto executable = compile(graph, gpu_of(communicator->rank()), options);
      executable->bind(std::make_shared<Variables>(gpu_of(communicator->rank())));
      for (uint64_t run = 0; run < kRuns; ++run)
        sums[rank].push_back(executable->run({{"x", numbers}}).at("y"));
    }
  });
  for (const std::vector<Tensor>& of_rank : sums) {
    for (const Tensor& sum : of_rank) EXPECT_TRUE(sum.identical(sums[0][0]));
  }
}

struct Trained {
  std::map<std::string, Tensor> state;
  std::vector<double> losses;
};

// Two epochs by that many GPUs; what each has then.
std::vector<Trained> train_on(int64_t ranks, Precision precision, std::optional<int64_t> bucket_bytes = {},
                              const std::function<void(train::TrainerOptions&)>& change = {}) {
  constexpr int64_t kBatch = 8;  // of all ranks
  std::vector<Trained> trained(static_cast<size_t>(ranks));
  on_ranks(ranks, [&](const std::shared_ptr<Communicator>& communicator) {
    train::TrainerOptions options{.optimizer = optim::sgd({.learning_rate = 0.1, .momentum = 0.9}),
                                  .precision = precision,
                                  .device = gpu_of(communicator->rank()),
                                  .seed = 5,
                                  .batch_norm_ranks = 0,
                                  .bucket_bytes = bucket_bytes};
    if (ranks > 1) options.communicator = communicator;
    if (change) change(options);
    train::Trainer trainer(tiny_resnet(0.2), options);
    Trained& own = trained[static_cast<size_t>(communicator->rank())];
    train::FitOptions fit{.epochs = 2};
    fit.on_step = [&](const train::StepEvent& event) { own.losses.push_back(event.measures.at("loss")); };
    trainer.fit(tiny_loader(kBatch / ranks), fit);
    own.state = trainer.training_state().tensors;
  });
  return trained;
}

TEST(Nccl, SharesOutTheOptimizersState) {
  TESSERA_NEEDS_TWO_GPUS();
  const Trained whole = train_on(2, Precision::fp32).front();
  for (const int64_t bucket_bytes : {0, 300}) {
    const std::vector<Trained> both =
        train_on(2, Precision::fp32, bucket_bytes,
                 [](train::TrainerOptions& options) { options.shard_optimizer = true; });
    EXPECT_EQ(different_tensors(both[0].state, both[1].state), std::vector<std::string>{});
    ASSERT_EQ(whole.losses.size(), both[0].losses.size());
    // Sums of other pieces round otherwise, which grows from step to step, as in TrainsAsOneGpuDoes...
    for (size_t i = 0; i < whole.losses.size(); ++i)
      EXPECT_NEAR(both[0].losses[i], whole.losses[i], 2e-3 * (1 + whole.losses[i])) << "step " << i;
  }
}

TEST(Nccl, TrainsAsOneGpuDoesWithTheWholeBatch) {
  TESSERA_NEEDS_TWO_GPUS();
  const Trained alone = train_on(1, Precision::fp32).front();
  const std::vector<Trained> both = train_on(2, Precision::fp32);
  EXPECT_EQ(different_tensors(both[0].state, both[1].state), std::vector<std::string>{});
  EXPECT_EQ(both[0].losses, both[1].losses);
  ASSERT_EQ(alone.losses.size(), both[0].losses.size());
  // Means over ranks round otherwise than over rows, which grows from step to step.
  for (size_t i = 0; i < alone.losses.size(); ++i)
    EXPECT_NEAR(both[0].losses[i], alone.losses[i], 2e-3 * (1 + alone.losses[i])) << "step " << i;
}

// What travels are variables, which the step overwrites in the end.
TEST(Nccl, DelaysGradientsAsOneGpuDoes) {
  TESSERA_NEEDS_TWO_GPUS();
  const auto delay = [](train::TrainerOptions& options) { options.gradient_delay = 1; };
  for (const Precision precision : {Precision::fp32, Precision::fp16}) {
    SCOPED_TRACE(to_string(precision));
    const Trained alone = train_on(1, precision, {}, delay).front();
    const Trained at_once = train_on(2, precision, 0, delay).front();
    ASSERT_EQ(alone.losses.size(), at_once.losses.size());
    // As in TrainsAsOneGpuDoesWithTheWholeBatch; 16 bits have 2^-11 in place of 2^-24, of which a step makes
    // less than it does of those before it.
    const double tolerance = precision == Precision::fp32 ? 2e-3 : 5e-2;
    for (size_t i = 0; i < alone.losses.size(); ++i)
      EXPECT_NEAR(at_once.losses[i], alone.losses[i], tolerance * (1 + alone.losses[i])) << "step " << i;
    for (const int64_t bucket_bytes : {512, 1 << 20}) {
      const std::vector<Trained> both = train_on(2, precision, bucket_bytes, delay);
      EXPECT_EQ(different_tensors(both[0].state, both[1].state), std::vector<std::string>{});
      EXPECT_EQ(different_tensors(both[0].state, at_once.state), std::vector<std::string>{}) << bucket_bytes;
    }
  }
}

TEST(Nccl, AveragesAfterLocalSteps) {
  TESSERA_NEEDS_TWO_GPUS();
  const auto locally = [](train::TrainerOptions& options) {
    options.batch_norm_ranks = 1;
    options.local_steps = 4;
  };
  const std::vector<Trained> both = train_on(2, Precision::fp16, {}, locally);
  EXPECT_EQ(different_tensors(both[0].state, both[1].state), std::vector<std::string>{});
  EXPECT_EQ(different_tensors(both[0].state, train_on(2, Precision::fp16, {}, locally).front().state),
            std::vector<std::string>{});
}

TEST(Nccl, TrainsToTheSameBitsAgainAndInBuckets) {
  TESSERA_NEEDS_TWO_GPUS();
  for (const Precision precision : {Precision::fp32, Precision::fp16}) {
    SCOPED_TRACE(to_string(precision));
    const Trained at_once = train_on(2, precision, 0).front();
    for (const int64_t bucket_bytes : {0, 512, 1 << 20}) {
      const Trained in_buckets = train_on(2, precision, bucket_bytes).front();
      EXPECT_EQ(different_tensors(in_buckets.state, at_once.state), std::vector<std::string>{})
          << bucket_bytes;
      EXPECT_EQ(in_buckets.losses, at_once.losses) << bucket_bytes;
    }
  }
}

// A chain of products with collectives beside it, whose memory is filled with NaN as soon as the plan frees
// it.
TEST(Nccl, HasItsMemoryForItselfUntilItIsWaitedFor) {
  TESSERA_NEEDS_TWO_GPUS();
  constexpr int64_t kWidth = 2048;
  const auto run = [&](bool poison) {
    std::vector<std::vector<Tensor>> results(kRanks);
    on_ranks(kRanks, [&](const std::shared_ptr<Communicator>& communicator) {
      Graph graph;
      Value* x = graph.add_input(InputRole::input, "x", {DataType::fp32, {kWidth, kWidth}});
      Value* y = x;
      std::vector<Value*> sums;
      for (int i = 0; i < 8; ++i) {
        y = ops::multiply(ops::matmul(y, x), 1.0 / kWidth);
        sums.push_back(ops::all_reduce(ops::negate(y), kAll));
      }
      Value* total = y;
      for (Value* sum : sums) total = ops::add(total, sum);
      graph.add_output("total", total);
      CompileOptions options;
      options.communicators[""] = communicator;
      options.poison_freed = poison;
      const auto device = gpu_of(communicator->rank());
      const auto executable = compile(graph, device, options);
      executable->bind(std::make_shared<Variables>(device));
      const Tensor numbers = random_tensor(DataType::fp32, {kWidth, kWidth}, -1, 1, 7);
      for (uint64_t i = 0; i < kRuns; ++i)
        results[static_cast<size_t>(communicator->rank())].push_back(
            executable->run({{"x", numbers}}).at("total"));
    });
    return results;
  };
  const auto recorded = run(false);
  const auto poisoned = run(true);
  for (size_t rank = 0; rank < kRanks; ++rank) {
    for (size_t i = 0; i < kRuns; ++i) {
      EXPECT_TRUE(recorded[rank][i].identical(recorded[0][0])) << rank << " " << i;
      EXPECT_TRUE(poisoned[rank][i].identical(recorded[0][0])) << rank << " " << i;
    }
  }
}

// Rank 1 makes some runs less than rank 0, which then waits on its GPU for what never comes: in the first
// run, which is enqueued node by node, and in a recorded one.
TEST(NcclFaults, ARankThatFailsEndsWhatOthersWaitFor) {
  TESSERA_NEEDS_TWO_GPUS();
  for (const int runs : {0, 3}) {
    SCOPED_TRACE(runs);
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_ERROR(on_ranks(kRanks,
                          [&](const std::shared_ptr<Communicator>& communicator) {
                            Graph graph;
                            Value* x = graph.add_input(InputRole::input, "x", {DataType::fp32, {1 << 20}});
                            graph.add_output("y", ops::all_reduce(ops::add(x, x), kAll));
                            CompileOptions options;
                            options.communicators[""] = communicator;
                            const auto device = gpu_of(communicator->rank());
                            const auto executable = compile(graph, device, options);
                            executable->bind(std::make_shared<Variables>(device));
                            const Tensor numbers(DataType::fp32, {1 << 20});
                            for (int i = 0; i < runs; ++i) executable->run({{"x", numbers}});
                            if (communicator->rank() == 1) {
                              std::this_thread::sleep_for(std::chrono::milliseconds(500));
                              communicator->abort("rank 1: the disk is full");
                            } else {
                              executable->run({{"x", numbers}});
                            }
                          }),
                 ErrorCode::rank_failure, "rank 1: the disk is full");
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(30));
  }
}

}  // namespace
}  // namespace tessera::testing
