// What of a candidate's plan is a refusal.
#include "tessera/device/common/kernel_table.h"

#include <gtest/gtest.h>

#include "tessera/device/common/refusal.h"

#include "support/expect_error.h"

namespace tessera::backend {
namespace {

class Addition : public Kernel {
 public:
  explicit Addition(int addend) : addend_(addend) {}
  int64_t workspace_bytes() const override { return addend_; }
  void run(const KernelArguments&) override {}

 private:
  int addend_;
};

class Candidates : public ::testing::Test {
 protected:
  std::unique_ptr<Graph> graph_ =
      parse_graph("graph g(input %x: fp32[8]) {\n  %y = exp(%x)\n  output y = %y\n}");
  KernelRequest request_{.node = *graph_->nodes().front(), .frozen_inputs = {false}};
};

TEST_F(Candidates, RefuseByAValue) {
  const KernelCandidate candidate = checked_candidate("odd", [](const KernelRequest&) -> KernelMaker {
    refuse_unless(false, "{} is even", 8);
    return nullptr;
  });
  EXPECT_EQ(candidate.refusal(request_), "8 is even");
  EXPECT_ERROR(candidate.create(request_), ErrorCode::unsupported, "odd refuses 'y'", "8 is even");
}

// A library that is missing would be hidden by the next candidate, which may be a hundred times slower.
TEST_F(Candidates, PassOnWhatIsNoRefusal) {
  for (const ErrorCode code : {ErrorCode::unsupported, ErrorCode::out_of_memory, ErrorCode::device_fault}) {
    const KernelCandidate candidate = checked_candidate(
        "any", [code](const KernelRequest&) -> KernelMaker { fail(code, "the library is missing"); });
    EXPECT_ERROR(candidate.plan(request_), code, "the library is missing");
    EXPECT_ERROR(unless_refused([&] { return candidate.plan(request_); }), code, "the library is missing");
  }
}

TEST_F(Candidates, FindOutOnceWhatTheirKernelsAreMadeOf) {
  int readings = 0;
  const KernelCandidate candidate =
      candidate_of<Addition>("any", [&readings](const KernelRequest&) { return ++readings; });
  const auto planned = candidate.plan(request_);
  const KernelMaker& make = std::get<KernelMaker>(planned);
  EXPECT_EQ(make()->workspace_bytes(), 1);
  EXPECT_EQ(make()->workspace_bytes(), 1);
  EXPECT_EQ(readings, 1);
}

struct Entry {
  std::string key;
};

// What is neither an operator nor made by a fusion is reached by no node.
TEST(KernelTable, RefusesKeysOfNothing) {
  const std::vector<FusionPattern> patterns{{.kind = "convolution_statistics"}};
  KernelTable<Entry> table;
  for (const char* key : {"exp", "fused", "fused:cluster", "fused:clusters", "fused:convolution_statistics",
                          "fused:convolution_weight_gradient"}) {
    table.add({key});
  }
  table.check(patterns);
  EXPECT_ERROR(table.check({}), ErrorCode::internal, "'fused:convolution_statistics'");
  for (const auto& [misspelt, meant] :
       std::map<std::string, std::string>{{"matmull", "matmul"},
                                          {"fused:clustre", "fused:cluster"},
                                          {"fused:convolution_statistic", "fused:convolution_statistics"}}) {
    KernelTable<Entry> wrong;
    wrong.add({misspelt});
    EXPECT_ERROR(wrong.check(patterns), ErrorCode::internal, "'" + misspelt + "', which no node is",
                 "did you mean '" + meant + "'");
  }
  // Casts are fused into contractions alone.
  KernelTable<Entry> elementwise;
  elementwise.add({"fused:exp"});
  EXPECT_ERROR(elementwise.check(patterns), ErrorCode::internal, "'fused:exp', which no node is");
}

}  // namespace
}  // namespace tessera::backend
