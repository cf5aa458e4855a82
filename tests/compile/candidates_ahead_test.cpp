// What the threads of a device plan and make before it is asked for, and what they leave alone.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>

#include <gtest/gtest.h>

#include "tessera/compile/executable.h"
#include "tessera/compile/host_memory.h"
#include "tessera/compile/threaded_kernels.h"

#include "support/expect_error.h"
#include "support/temporary_folder.h"

namespace tessera::testing {
namespace {

// What the threads of a device have done.
struct Events {
  std::atomic<int> planned{0};
  std::atomic<int> planned_elsewhere{0};  // not by the thread that compiles
  std::atomic<int> made{0};
  std::atomic<int> made_elsewhere{0};
  std::atomic<int> made_before_runs{-1};         // none has run
  std::atomic<int> first_runs{0};                // of kernels that load much, not by the thread that compiles
  std::atomic<int> first_runs_before_waits{-1};  // when the compiling thread waited for kernels
  std::atomic<int> waits{0};
  std::atomic<int> active{0};
  const std::thread::id compiling = std::this_thread::get_id();
  std::mutex mutex;                    // guards what follows, and what first runs write
  std::set<std::thread::id> prepared;  // have the device's settings
};

struct Active {
  explicit Active(Events& all) : events(all) { ++events.active; }
  ~Active() { --events.active; }
  Active(const Active&) = delete;
  Active& operator=(const Active&) = delete;
  Events& events;
};

class Ones : public Kernel {
 public:
  Ones(const Node& node, std::chrono::microseconds duration, bool loads, Events& events)
      : count_(node.output()->type().element_count()), duration_(duration), loads_(loads), events_(events) {}
  bool loads_at_first_run() const override { return loads_; }
  int64_t workspace_bytes() const override { return 64; }
  void run(const KernelArguments& arguments) override {
    if (std::this_thread::get_id() != events_.compiling) {
      EXPECT_TRUE(loads_);
      EXPECT_NE(arguments.workspace, nullptr);
      ++events_.first_runs;
      const std::lock_guard lock(events_.mutex);  // first runs share their memory
      std::fill_n(static_cast<float*>(arguments.outputs[0]), count_, 1.0F);
      if (loads_) throw std::runtime_error("what is wrong is said by a run that counts");
      return;
    }
    int none = -1;
    events_.made_before_runs.compare_exchange_strong(none, events_.made);
    std::this_thread::sleep_for(duration_);
    std::fill_n(static_cast<float*>(arguments.outputs[0]), count_, 1.0F);
  }

 private:
  int64_t count_;
  std::chrono::microseconds duration_;
  bool loads_;
  Events& events_;
};

struct Offer {
  std::string name;
  int microseconds = 0;
  bool refuses = false;
  std::string node = {};  // the only one that it is for; "": for all
  std::optional<ErrorCode> plan_fails = {};
  std::optional<ErrorCode> making_fails = {};
  bool loads_at_first_run = false;
};

class ListeningDevice : public HostMemoryDevice {
 public:
  explicit ListeningDevice(std::vector<Offer> offers) : offers_(std::move(offers)) {}
  DeviceDescription description() const override { return {.name = "listening"}; }
  bool tunable(const Node&) const override { return true; }

  std::vector<KernelCandidate> candidates(const Node& node) const override {
    std::vector<KernelCandidate> result;
    for (const Offer& offer : offers_) {
      if (!offer.node.empty() && offer.node != node.name()) continue;
      result.push_back({.name = offer.name, .plan = [this, offer](const KernelRequest& request) {
                          return plan(offer, request);
                        }});
    }
    return result;
  }

  Events& events() const { return *events_; }
  std::vector<KernelRequest> requests() const {
    const std::lock_guard lock(events_->mutex);
    return requests_;
  }

 private:
  std::variant<Refusal, KernelMaker> plan(const Offer& offer, const KernelRequest& request) const {
    Events& events = *events_;
    const Active active(events);
    ++events.planned;
    if (std::this_thread::get_id() != events.compiling) ++events.planned_elsewhere;
    {
      const std::lock_guard lock(events.mutex);
      requests_.push_back(request);
    }
    if (offer.plan_fails.has_value()) fail(*offer.plan_fails, "{} cannot be planned", offer.name);
    if (offer.refuses) return Refusal{"not today"};
    return [&events, offer, &node = request.node] { return make(offer, node, events); };
  }

  static std::unique_ptr<Kernel> make(const Offer& offer, const Node& node, Events& events) {
    const Active active(events);
    if (offer.making_fails.has_value()) fail(*offer.making_fails, "{} cannot be made", offer.name);
    if (std::this_thread::get_id() != events.compiling) {
      ++events.made_elsewhere;
      const std::lock_guard lock(events.mutex);
      EXPECT_TRUE(events.prepared.contains(std::this_thread::get_id()));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    ++events.made;
    return std::make_unique<Ones>(node, std::chrono::microseconds(offer.microseconds),
                                  offer.loads_at_first_run, events);
  }

  std::vector<Offer> offers_;
  std::shared_ptr<Events> events_ = std::make_shared<Events>();
  mutable std::vector<KernelRequest> requests_;
};

class ThreadedDevice : public ListeningDevice, public ThreadedKernels {
 public:
  explicit ThreadedDevice(std::vector<Offer> offers, unsigned threads = 3)
      : ListeningDevice(std::move(offers)), threads_(threads) {}
  unsigned planning_threads() const override { return threads_; }
  void wait_for_kernels() override {
    EXPECT_EQ(events().active, 0);
    events().first_runs_before_waits = events().first_runs.load();
    ++events().waits;
  }
  std::function<void()> settings_of_thread() const override {
    return [&events = events()] {
      const std::lock_guard lock(events.mutex);
      events.prepared.insert(std::this_thread::get_id());
    };
  }

 private:
  unsigned threads_;
};

// Three works, one of them twice.
constexpr const char* kGraph =
    "graph g(input %x: fp32[8]) {\n  %a = exp(%x)\n  %b = tanh(%a)\n  %c = exp(%b)\n  %d = relu(%c)\n"
    "  output d = %d\n}\n";
constexpr int kNodes = 4;
constexpr int kWorks = 3;

CompileOptions unfused(bool tune, const std::string& file = "") {
  CompileOptions options;
  options.passes.fuse = false;
  options.tune = tune;
  options.tuning_file = file;
  return options;
}

const std::vector<Offer>& two_offers() {
  static const std::vector<Offer> offers{
      {.name = "refusing", .refuses = true}, {.name = "slow", .microseconds = 2000}, {.name = "fast"}};
  return offers;
}

std::vector<NodeReport> compile_on(const std::shared_ptr<ListeningDevice>& device,
                                   const CompileOptions& options) {
  return compile(*parse_graph(kGraph), device, options)->nodes();
}

TEST(CandidatesAhead, AreWhatADeviceWithoutThreadsAsks) {
  const auto device = std::make_shared<ThreadedDevice>(two_offers());
  const auto alone = std::make_shared<ListeningDevice>(two_offers());
  for (const bool tune : {false, true}) {
    const std::vector<NodeReport> reports = compile_on(device, unfused(tune));
    const std::vector<NodeReport> expected = compile_on(alone, unfused(tune));
    ASSERT_EQ(reports.size(), expected.size());
    for (size_t i = 0; i < reports.size(); ++i) {
      EXPECT_EQ(reports[i].name, expected[i].name);
      EXPECT_EQ(reports[i].kernel, tune ? "fast" : "slow");
      EXPECT_EQ(expected[i].kernel, reports[i].kernel);
      ASSERT_EQ(reports[i].candidates.size(), 3U);
      for (size_t c = 0; c < 3; ++c) {
        EXPECT_EQ(reports[i].candidates[c].name, expected[i].candidates[c].name);
        EXPECT_EQ(reports[i].candidates[c].refused, expected[i].candidates[c].refused);
        EXPECT_EQ(reports[i].candidates[c].microseconds >= 0, expected[i].candidates[c].microseconds >= 0);
      }
    }
  }
  EXPECT_EQ(alone->events().planned_elsewhere, 0);
  EXPECT_EQ(alone->events().made_elsewhere, 0);
}

TEST(CandidatesAhead, ArePlannedOnceByTheDevicesThreads) {
  const auto device = std::make_shared<ThreadedDevice>(two_offers());
  compile_on(device, unfused(false));
  EXPECT_EQ(device->events().planned, 3 * kNodes);
  EXPECT_EQ(device->events().planned_elsewhere, 3 * kNodes);
}

TEST(CandidatesAhead, RunOnceBeforeTheFirstIsTimedWhereThatLoadsMuch) {
  const auto device = std::make_shared<ThreadedDevice>(std::vector<Offer>{
      {.name = "library", .microseconds = 2000, .loads_at_first_run = true}, {.name = "own"}});
  const std::vector<NodeReport> reports = compile_on(device, unfused(true));
  EXPECT_EQ(device->events().first_runs, kWorks);
  EXPECT_EQ(device->events().first_runs_before_waits, kWorks);
  for (const NodeReport& report : reports) EXPECT_EQ(report.kernel, "own");
}

TEST(CandidatesAhead, AreAllMadeBeforeTheFirstIsTimed) {
  const auto device = std::make_shared<ThreadedDevice>(two_offers());
  compile_on(device, unfused(true));
  Events& events = device->events();
  EXPECT_EQ(events.planned, 3 * kNodes);
  EXPECT_EQ(events.made_before_runs, 2 * kWorks);  // equal work once
  EXPECT_EQ(events.made_elsewhere, 2 * kWorks);
  EXPECT_GE(events.waits, 1);
  EXPECT_EQ(events.active, 0);
}

TEST(CandidatesAhead, AreNotMadeWhereNothingIsTuned) {
  const auto device = std::make_shared<ThreadedDevice>(two_offers());
  compile_on(device, unfused(false));
  EXPECT_EQ(device->events().made, kNodes);  // those that are taken
  EXPECT_EQ(device->events().made_elsewhere, 0);
  EXPECT_EQ(device->events().waits, 0);
}

TEST(CandidatesAhead, AreNotMadeWhereTheChoiceIsRemembered) {
  const TemporaryFolder folder;
  const std::string file = (folder.path() / "tuning.json").string();
  compile_on(std::make_shared<ThreadedDevice>(two_offers()), unfused(true, file));
  const auto device = std::make_shared<ThreadedDevice>(two_offers());
  for (const bool tune : {false, true}) {
    for (const NodeReport& report : compile_on(device, unfused(tune, file))) EXPECT_EQ(report.kernel, "fast");
  }
  EXPECT_EQ(device->events().made, 2 * kNodes);
  EXPECT_EQ(device->events().made_elsewhere, 0);
  EXPECT_EQ(device->events().made_before_runs, -1);
  EXPECT_EQ(device->events().waits, 0);

  // A new candidate of one node makes it worth another look, and no other.
  std::vector<Offer> offers = two_offers();
  offers.push_back({.name = "new", .node = "b"});
  const auto grown = std::make_shared<ThreadedDevice>(offers);
  compile_on(grown, unfused(true, file));
  EXPECT_EQ(grown->events().made_elsewhere, 3);
}

// What compiles it would else be waited for before the next one is timed.
TEST(CandidatesAhead, AreMadeBeforeTheFirstIsTimedWhereTheyLeaveNoChoiceToo) {
  std::vector<Offer> offers = two_offers();
  for (Offer& offer : offers) offer.node = "b";
  for (const char* node : {"a", "c", "d"}) offers.push_back({.name = "only", .node = node});
  const auto device = std::make_shared<ThreadedDevice>(offers);
  compile_on(device, unfused(true));
  EXPECT_EQ(device->events().made_before_runs, 3 + 2);
  EXPECT_EQ(device->events().made_elsewhere, 3 + 2);
  compile_on(device, unfused(false));
  EXPECT_EQ(device->events().made_elsewhere, 3 + 2);
}

TEST(CandidatesAhead, OfEqualWorkArePlannedLast) {
  const auto device = std::make_shared<ThreadedDevice>(std::vector<Offer>{{.name = "only"}}, 1);
  const auto executable = compile(*parse_graph(kGraph), device, unfused(true));
  std::vector<std::string> order;
  for (const KernelRequest& request : device->requests()) order.push_back(request.node.name());
  EXPECT_EQ(order, (std::vector<std::string>{"a", "b", "d", "c"}));
}

TEST(CandidatesAhead, SayInTheirTurnWhatPlanningThrew) {
  for (const ErrorCode code : {ErrorCode::device_fault, ErrorCode::out_of_memory}) {
    std::vector<Offer> offers = two_offers();
    offers.push_back({.name = "bad", .node = "b", .plan_fails = code});
    offers.push_back({.name = "worse", .node = "d", .plan_fails = ErrorCode::internal});
    const auto device = std::make_shared<ThreadedDevice>(offers);
    EXPECT_ERROR(compile_on(device, unfused(false)), code, "bad cannot be planned",
                 "in kernel bad of node 'b'");
    EXPECT_EQ(device->events().active, 0);
  }
}

TEST(CandidatesAhead, EndWhenNoKernelIsFound) {
  const auto device =
      std::make_shared<ThreadedDevice>(std::vector<Offer>{{.name = "refusing", .refuses = true}});
  EXPECT_ERROR(compile_on(device, unfused(false)), ErrorCode::unsupported, "refusing: not today");
  EXPECT_EQ(device->events().active, 0);
}

// As it does where they are made when they are timed.
TEST(CandidatesAhead, LeaveToTheTunerWhatMakingThrew) {
  const auto with_failure = [](ErrorCode code) {
    std::vector<Offer> offers = two_offers();
    offers.push_back({.name = "bad", .node = "b", .making_fails = code});
    return std::make_shared<ThreadedDevice>(offers);
  };
  for (const NodeReport& report : compile_on(with_failure(ErrorCode::unsupported), unfused(true)))
    EXPECT_EQ(report.kernel, "fast");
  const std::vector<NodeReport> lacking = compile_on(with_failure(ErrorCode::out_of_memory), unfused(true));
  ASSERT_EQ(lacking.size(), static_cast<size_t>(kNodes));
  EXPECT_EQ(lacking[0].kernel, "fast");
  EXPECT_EQ(lacking[1].kernel, "slow");  // not tuned: the first
  EXPECT_ERROR(compile_on(with_failure(ErrorCode::device_fault), unfused(true)), ErrorCode::device_fault,
               "bad cannot be made", "in kernel bad of node 'b'");
}

TEST(CandidatesAhead, AreAskedForTheNodesAsTheyAreCompiled) {
  const auto device = std::make_shared<ThreadedDevice>(std::vector<Offer>{{.name = "only"}});
  CompileOptions options;
  options.passes.frozen = true;
  options.passes.deterministic = false;
  options.passes.fuse = false;
  const auto executable = compile(
      *parse_graph("graph g(input %x: fp32[4], parameter %w: fp32[4]) {\n  %e = exp(%w)\n"
                   "  %y = multiply(%x, %e)\n  %z = reshape(%y) {shape = [2, 2]}\n  output z = %z\n}\n"),
      device, options);
  const std::vector<KernelRequest> requests = device->requests();
  ASSERT_EQ(requests.size(), 2U);  // a reshape shows the same memory
  const bool in_order = requests[0].node.operator_name() == "exp";
  const KernelRequest& once = requests[in_order ? 0 : 1];
  const KernelRequest& every_run = requests[in_order ? 1 : 0];
  EXPECT_EQ(once.node.operator_name(), "exp");
  EXPECT_EQ(once.frozen_inputs, std::vector<bool>{false});  // nothing is prepared
  EXPECT_EQ(every_run.node.operator_name(), "multiply");
  EXPECT_EQ(every_run.frozen_inputs, (std::vector<bool>{false, true}));
  EXPECT_FALSE(every_run.deterministic);
  EXPECT_FALSE(every_run.tf32);
}

}  // namespace
}  // namespace tessera::testing
