// Whatever leaves a kernel says of which node it is.
#include <cstdlib>
#include <functional>
#include <new>
#include <stdexcept>

#include <gtest/gtest.h>

#include "tessera/compile/executable.h"
#include "tessera/compile/host_memory.h"
#include "tessera/compile/reference_kernel.h"

#include "support/expect_error.h"

namespace tessera::testing {
namespace {

enum class Stage { plan, make, pack, run };

using Throw = std::function<void()>;

class FailingKernel : public Kernel {
 public:
  FailingKernel(Stage stage, Throw failure) : stage_(stage), failure_(std::move(failure)) {}
  std::vector<Packing> packings() const override { return {{.input = 1, .layout = "any", .bytes = 4}}; }
  void pack(size_t, const void*, void*) const override {
    if (stage_ == Stage::pack) failure_();
  }
  void run(const KernelArguments&) override {
    if (stage_ == Stage::run) failure_();
  }

 private:
  Stage stage_;
  Throw failure_;
};

class FailingDevice : public HostMemoryDevice {
 public:
  FailingDevice(Stage stage, Throw failure) : stage_(stage), failure_(std::move(failure)) {}
  DeviceDescription description() const override { return {.name = "failing", .versions = {}}; }
  std::vector<KernelCandidate> candidates(const Node&) const override {
    return {{.name = "loops.failing",
             .plan = [stage = stage_, failure = failure_](const KernelRequest&) -> KernelMaker {
               if (stage == Stage::plan) failure();
               return [stage, failure] {
                 if (stage == Stage::make) failure();
                 return std::make_unique<FailingKernel>(stage, failure);
               };
             }}};
  }

 private:
  Stage stage_;
  Throw failure_;
};

void compile_and_run(Stage stage, const Throw& failure) {
  const auto graph = parse_graph(R"(graph g(input %x: fp32[2, 3], constant %w: fp32[3, 4]) {
    %product = matmul(%x, %w)
    output y = %product
  })");
  const auto executable = compile(*graph, std::make_shared<FailingDevice>(stage, failure));
  executable->load([](const std::string&) { return Tensor(DataType::fp32, {3, 4}); });
  executable->run({{"x", Tensor(DataType::fp32, {2, 3})}});
}

constexpr const char* kNamed = "in kernel loops.failing of node 'product': matmul of fp32[2, 3], fp32[3, 4]";

class KernelFailure : public ::testing::TestWithParam<Stage> {};

TEST_P(KernelFailure, OfOursKeepsItsCode) {
  EXPECT_ERROR(compile_and_run(GetParam(), [] { fail(ErrorCode::device_fault, "the card is gone"); }),
               ErrorCode::device_fault, "the card is gone", kNamed);
}

TEST_P(KernelFailure, ForLackOfMemoryIsThat) {
  EXPECT_ERROR(compile_and_run(GetParam(), [] { throw std::bad_alloc(); }), ErrorCode::out_of_memory,
               "out of memory", kNamed);
}

TEST_P(KernelFailure, OfAnotherLibraryIsAFault) {
  EXPECT_ERROR(compile_and_run(GetParam(), [] { throw std::runtime_error("could not execute"); }),
               ErrorCode::internal, "could not execute", kNamed);
}

INSTANTIATE_TEST_SUITE_P(Stages, KernelFailure,
                         ::testing::Values(Stage::plan, Stage::make, Stage::pack, Stage::run));

// Works beside the host and records. Its kernel for exp fails there at its second run, of which whoever waits
// for the queue is told.
class LateDevice : public HostMemoryDevice {
 public:
  DeviceDescription description() const override { return {.name = "late", .versions = {}}; }
  bool host_accessible() const override { return false; }
  std::vector<KernelCandidate> candidates(const Node& node) const override {
    if (node.operator_name() != "exp") return {reference_candidate()};
    return {{.name = "late.exp", .plan = [this](const KernelRequest&) -> KernelMaker {
               return [this] { return std::make_unique<LateKernel>(*runs_); };
             }}};
  }
  std::shared_ptr<tessera::Queue> queue() override { return std::make_shared<Queue>(*this); }

  int recordings = 0;

 private:
  class LateKernel : public Kernel {
   public:
    explicit LateKernel(int& runs) : runs_(runs) {}
    void run(const KernelArguments&) override { ++runs_; }

   private:
    int& runs_;
  };
  class Repeated : public Recording {
   public:
    explicit Repeated(std::function<void()> work) : work_(std::move(work)) {}
    void launch() override { work_(); }

   private:
    std::function<void()> work_;
  };
  class Queue : public HostQueue {
   public:
    explicit Queue(LateDevice& device) : device_(device) {}
    void synchronize() override {
      require(*device_.runs_ < 2, ErrorCode::device_fault, "the context is lost");
    }
    void copy_to_host(void* host, const void* device, int64_t bytes) override {
      synchronize();
      HostQueue::copy_to_host(host, device, bytes);
    }
    std::unique_ptr<Recording> record(const std::function<void()>& work) override {
      ++device_.recordings;
      return std::make_unique<Repeated>(work);
    }

   private:
    LateDevice& device_;
  };

  std::shared_ptr<int> runs_ = std::make_shared<int>(0);
};

struct LateFault {
  std::string message;
  int recordings = 0;
};

LateFault late_fault() {
  const auto device = std::make_shared<LateDevice>();
  const auto graph = parse_graph(R"(graph g(input %x: fp32[2]) {
    %a = negate(%x)
    %b = exp(%a)
    %c = negate(%b)
    output y = %c
  })");
  CompileOptions options;
  options.passes.fuse = false;
  const auto executable = compile(*graph, device, options);
  executable->load({});
  const Tensor x(DataType::fp32, {2});
  executable->run({{"x", x}});
  try {
    executable->run({{"x", x}});
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::device_fault);
    return {error.what(), device->recordings};
  }
  ADD_FAILURE() << "the fault was not told";
  return {};
}

TEST(LateFault, NamesItsNodeWhereTheHostWaitsForEach) {
  const LateFault usual = late_fault();
  EXPECT_EQ(usual.message, "the context is lost");
  EXPECT_EQ(usual.recordings, 1);
  ASSERT_EQ(setenv("TESSERA_SYNCHRONIZE", "1", 1), 0);
  const LateFault waited = late_fault();
  ASSERT_EQ(unsetenv("TESSERA_SYNCHRONIZE"), 0);
  EXPECT_EQ(waited.message, "the context is lost\n  in kernel late.exp of node 'b': exp of fp32[2]");
  EXPECT_EQ(waited.recordings, 0);
}

}  // namespace
}  // namespace tessera::testing
