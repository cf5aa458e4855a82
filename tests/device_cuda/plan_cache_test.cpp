// Plans of cuDNN in memory and on disk, with a stand-in for cuDNN; cudnn_plan_test.cpp has the real one.
#include "device/cuda/cudnn/plan_cache.h"

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

#include <gtest/gtest.h>

#include "tessera/base/error.h"
#include "tessera/device/common/refusal.h"

#include "device/cuda/codegen/artifacts.h"
#include "device/cuda/cudnn/cudnn_convolution_graph.h"
#include "support/expect_error.h"
#include "support/temporary_folder.h"

namespace tessera::cuda {
namespace {

class FakePlan : public CudnnPlan {
 public:
  explicit FakePlan(SavedPlan saved) : saved_(std::move(saved)) {}
  int64_t workspace_bytes() const override { return 0; }
  int64_t choices() const override { return saved_.choices; }
  SavedPlan saved() const override { return saved_; }
  void run(const PlanOperands&, void*, Queue&) override {}

 private:
  SavedPlan saved_;
};

// What a plan was made from, with bytes that text files would change.
std::string text_of(const PlanProblem& problem, int64_t choice) {
  return fmt::format("{} #{}\r\n", problem.key, choice) + '\0' + "\n";
}

// Counts what it does; refuses to read what `reads` does not hold for.
struct FakeMaker {
  std::atomic<int> built{0};
  std::atomic<int> loaded{0};
  std::string versions = "card; library 1";
  bool builds = true;
  std::optional<ErrorCode> machine = {};  // what is wrong with it
  bool saves = true;
  bool reads = true;

  PlanMaker maker() {
    return {.versions = versions,
            .build = [this](const PlanProblem& problem, int64_t choice) -> std::shared_ptr<CudnnPlan> {
              ++built;
              if (machine.has_value()) fail(*machine, "the machine fails today");
              backend::refuse_unless(builds, "no engine today");
              return std::make_shared<FakePlan>(SavedPlan{5, saves ? text_of(problem, choice) : ""});
            },
            .load = [this](const PlanProblem&, const SavedPlan& saved) -> std::shared_ptr<CudnnPlan> {
              if (machine.has_value()) fail(*machine, "the machine fails today");
              backend::refuse_unless(reads, "of another library");
              ++loaded;
              return std::make_shared<FakePlan>(saved);
            }};
  }
};

ConvolutionProblem some_problem() {
  return {.x = {2, 8, 8, 4},
          .weight = {16, 3, 3, 4},
          .y = {2, 8, 8, 16},
          .strides = {1, 1},
          .padding_low = {1, 1},
          .padding_high = {1, 1},
          .dilations = {1, 1}};
}

class PlanCacheTest : public ::testing::Test {
 protected:
  // As another process has it.
  std::unique_ptr<PlanCache> new_cache(size_t outcomes = PlanCache::kOutcomes) {
    return std::make_unique<PlanCache>(fake_.maker(), CacheFiles(folder_.path().string(), "plan"), outcomes);
  }
  // Gets it, and holds it against what it must be.
  void expect_plan(PlanCache& cache, int64_t choice = 0) {
    const auto plan = cache.get(problem_, choice);
    EXPECT_EQ(plan->saved(), (SavedPlan{5, text_of(problem_, choice)}));
  }

  testing::TemporaryFolder folder_;
  FakeMaker fake_;
  PlanProblem problem_ = some_problem().plan_problem();
};

TEST_F(PlanCacheTest, BuildsAPlanOnceAndReadsItInTheNextProcess) {
  const auto first = new_cache();
  EXPECT_EQ(first->get(problem_, 0), first->get(problem_, 0));
  EXPECT_EQ(fake_.built, 1);
  const auto second = new_cache();
  expect_plan(*second);
  expect_plan(*second);
  EXPECT_EQ(fake_.built, 1);
  EXPECT_EQ(fake_.loaded, 1);
  expect_plan(*second, 3);
  EXPECT_EQ(fake_.built, 2);
}

// Of a plan that is in memory already, too.
TEST_F(PlanCacheTest, GivesPlansAwayAndTakesThoseThatAreOffered) {
  const auto first = new_cache();
  expect_plan(*first, 1);
  KernelArtifacts artifacts;
  {
    ArtifactRecording recording;
    expect_plan(*first, 1);
    expect_plan(*first, 2);
    artifacts = recording.take();
  }
  expect_plan(*first, 3);
  EXPECT_EQ(artifacts.size(), 2);
  std::filesystem::remove_all(folder_.path());
  const auto offered = offer_artifacts(std::move(artifacts));
  const auto second = new_cache();
  fake_.built = 0;
  expect_plan(*second, 1);
  expect_plan(*second, 2);
  EXPECT_EQ(fake_.built, 0);
  expect_plan(*second, 3);
  EXPECT_EQ(fake_.built, 1);
}

// What goes from memory is read from disk; a refusal is asked for anew.
TEST_F(PlanCacheTest, KeepsTheOutcomesThatWereAskedForLast) {
  const auto cache = new_cache(2);
  std::vector<std::weak_ptr<CudnnPlan>> plans;
  for (int64_t choice = 0; choice < 50; ++choice) plans.push_back(cache->get(problem_, choice));
  EXPECT_EQ(std::count_if(plans.begin(), plans.end(), [](const auto& plan) { return !plan.expired(); }), 2);
  expect_plan(*cache, 49);
  EXPECT_EQ(fake_.loaded, 0);
  expect_plan(*cache, 0);
  EXPECT_EQ(fake_.loaded, 1);
  EXPECT_EQ(fake_.built, 50);
}

// They say nothing of the problem. A library that is missing is no refusal either.
TEST_F(PlanCacheTest, TakesNoLackOfMemoryAndNoFaultForARefusal) {
  for (const ErrorCode code : {ErrorCode::out_of_memory, ErrorCode::device_fault, ErrorCode::unsupported}) {
    const auto cache = new_cache();
    const int64_t choice = static_cast<int64_t>(code);
    fake_.built = 0;
    fake_.machine = code;
    EXPECT_ERROR(cache->get(problem_, choice), code, "the machine fails today");
    EXPECT_ERROR(cache->get(problem_, choice), code, "the machine fails today");
    fake_.machine.reset();
    expect_plan(*cache, choice);
    EXPECT_EQ(fake_.built, 3);
  }
}

// Another plan would be built in the place of the one on disk.
TEST_F(PlanCacheTest, TakesNoFaultForAPlanThatCannotBeRead) {
  expect_plan(*new_cache());
  const auto cache = new_cache();
  fake_.machine = ErrorCode::device_fault;
  EXPECT_ERROR(cache->get(problem_, 0), ErrorCode::device_fault, "the machine fails today");
  fake_.machine.reset();
  expect_plan(*cache);
  EXPECT_EQ(fake_.built, 1);
  EXPECT_EQ(fake_.loaded, 1);
}

TEST_F(PlanCacheTest, BuildsAnewWhatIsDamagedCutOffOrOfAnotherProblem) {
  const std::string path = new_cache()->path(problem_, 0);
  expect_plan(*new_cache(), 1);
  std::vector<std::function<void()>> harms{
      [&] {
        std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
        file.seekp(-3, std::ios::end);
        file << '?';
      },
      [&] { std::filesystem::resize_file(path, std::filesystem::file_size(path) - 1); },
      [&] { std::filesystem::resize_file(path, 0); },
      [&] {
        std::filesystem::copy_file(new_cache()->path(problem_, 1), path,
                                   std::filesystem::copy_options::overwrite_existing);
      },
      [&] { std::ofstream(path) << "not a plan at all"; }};
  expect_plan(*new_cache());
  for (const auto& harm : harms) {
    harm();
    fake_.built = fake_.loaded = 0;
    expect_plan(*new_cache());
    EXPECT_EQ(fake_.built, 1);
    EXPECT_EQ(fake_.loaded, 0);
    expect_plan(*new_cache());  // the file is whole again
    EXPECT_EQ(fake_.built, 1);
    EXPECT_EQ(fake_.loaded, 1);
  }
}

TEST_F(PlanCacheTest, BuildsAnewWhatTheLibraryDoesNotRead) {
  expect_plan(*new_cache());
  fake_.reads = false;
  expect_plan(*new_cache());
  EXPECT_EQ(fake_.built, 2);
  EXPECT_EQ(fake_.loaded, 0);
}

TEST_F(PlanCacheTest, BuildsAnewForAnotherCardOrLibrary) {
  expect_plan(*new_cache());
  fake_.versions = "card; library 2";
  expect_plan(*new_cache());
  EXPECT_EQ(fake_.built, 2);
  EXPECT_EQ(fake_.loaded, 0);
}

TEST_F(PlanCacheTest, KeepsARefusalForTheProcessOnly) {
  fake_.builds = false;
  const auto cache = new_cache();
  for (int i = 0; i < 2; ++i)
    EXPECT_ERROR(cache->get(problem_, 0), ErrorCode::unsupported, "no engine today");
  EXPECT_EQ(fake_.built, 1);
  fake_.builds = true;
  expect_plan(*new_cache());
}

TEST_F(PlanCacheTest, DoesWithoutAFileForWhatCannotBeSaved) {
  fake_.saves = false;
  EXPECT_NE(new_cache()->get(problem_, 0), nullptr);
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
}

TEST_F(PlanCacheTest, MakesEachPlanOnceForAllThreads) {
  const auto cache = new_cache();
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int64_t choice = 0; choice < 8; ++choice) {
        EXPECT_EQ(cache->get(problem_, choice)->saved().text, text_of(problem_, choice));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(fake_.built, 8);
}

// As processes that start at the same time.
TEST_F(PlanCacheTest, SharesAFolderWithOthers) {
  std::vector<std::thread> processes;
  for (int i = 0; i < 4; ++i) {
    processes.emplace_back([&] {
      const auto cache = new_cache();
      for (int64_t choice = 0; choice < 8; ++choice) expect_plan(*cache, choice);
    });
  }
  for (std::thread& process : processes) process.join();
  const auto begin = std::filesystem::directory_iterator(folder_.path());
  EXPECT_EQ(std::distance(begin, std::filesystem::directory_iterator()), 8);
}

TEST_F(PlanCacheTest, TellsAllProblemsApart) {
  std::vector<ConvolutionProblem> problems(1, some_problem());
  const auto add = [&](const std::function<void(ConvolutionProblem&)>& change) {
    change(problems.emplace_back(some_problem()));
  };
  add([](auto& problem) { problem.kind = ConvolutionKind::data_gradient; });
  add([](auto& problem) { problem.kind = ConvolutionKind::weight_gradient; });
  add([](auto& problem) { problem.type = DataType::fp16; });
  add([](auto& problem) { problem.type = DataType::bf16; });
  add([](auto& problem) { problem.x[0] = 3; });
  add([](auto& problem) { problem.weight[0] = 17; });
  add([](auto& problem) { problem.y[3] = 17; });
  add([](auto& problem) { problem.strides = {1, 2}; });
  add([](auto& problem) { problem.padding_low = {0, 1}; });
  add([](auto& problem) { problem.padding_high = {0, 1}; });
  add([](auto& problem) { problem.dilations = {1, 2}; });
  add([](auto& problem) { problem.groups = 2; });
  for (const auto flag :
       {&ConvolutionProblem::tf32, &ConvolutionProblem::deterministic, &ConvolutionProblem::bias,
        &ConvolutionProblem::residual, &ConvolutionProblem::mask, &ConvolutionProblem::statistics}) {
    add([flag](auto& problem) { problem.*flag = !(problem.*flag); });
  }
  add([](auto& problem) { problem.activation = ConvolutionActivation::relu; });
  add([](auto& problem) { problem.activation = ConvolutionActivation::silu; });
  add([](auto& problem) { problem.relu_limit = 6; });
  std::set<std::string> paths;
  for (const ConvolutionProblem& problem : problems)
    paths.insert(new_cache()->path(problem.plan_problem(), 0));
  paths.insert(new_cache()->path(some_problem().plan_problem(), 1));
  EXPECT_EQ(paths.size(), problems.size() + 1);
}

}  // namespace
}  // namespace tessera::cuda
