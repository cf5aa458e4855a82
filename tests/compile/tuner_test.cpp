// What the tuner times, takes and remembers, on a device whose kernels are made for it.
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tessera/base/file.h"
#include "tessera/compile/executable.h"
#include "tessera/compile/host_memory.h"

#include "compile/tuning_file.h"
#include "support/expect_error.h"
#include "support/temporary_folder.h"

namespace tessera::testing {
namespace {

namespace fs = std::filesystem;
using std::chrono::microseconds;

// Of a device that works on while the host does something else.
struct OwnClock {
  microseconds now{0};
};

class OwnTimer : public DeviceTimer {
 public:
  explicit OwnTimer(std::shared_ptr<OwnClock> clock) : clock_(std::move(clock)) {}
  void mark() override { points_.emplace_back(clock_->now); }
  std::vector<Clock::time_point> points() override { return points_; }

 private:
  std::shared_ptr<OwnClock> clock_;
  std::vector<Clock::time_point> points_;
};

// Adds 1 after a while, or something else.
class SlowAddition : public Kernel {
 public:
  SlowAddition(microseconds duration, float addend, bool writes, microseconds own_duration,
               std::shared_ptr<OwnClock> clock)
      : duration_(duration),
        addend_(addend),
        writes_(writes),
        own_duration_(own_duration),
        clock_(std::move(clock)) {}
  void run(const KernelArguments& arguments) override {
    std::this_thread::sleep_for(duration_);
    if (clock_ != nullptr) clock_->now += own_duration_;
    if (!writes_) return;
    const auto* x = static_cast<const float*>(arguments.inputs[0]);
    auto* y = static_cast<float*>(arguments.outputs[0]);
    for (int i = 0; i < 8; ++i) y[i] = x[i] + addend_;
  }

 private:
  microseconds duration_;
  float addend_;
  bool writes_;
  microseconds own_duration_;
  std::shared_ptr<OwnClock> clock_;
};

struct Offer {
  std::string name;
  int microseconds = 0;
  float addend = 1;
  bool writes = true;
  bool fallback = false;
  int own_microseconds = 0;  // by the device's clock, if it has one
  bool only_tuned = false;
  std::optional<ErrorCode> fails = {};  // how its kernel cannot be made
  bool lacks_host_memory = false;
};

class ClockedQueue : public HostQueue {
 public:
  explicit ClockedQueue(std::shared_ptr<OwnClock> clock) : clock_(std::move(clock)) {}
  std::unique_ptr<DeviceTimer> timer(size_t) override {
    if (clock_ == nullptr) return nullptr;
    return std::make_unique<OwnTimer>(clock_);
  }

 private:
  std::shared_ptr<OwnClock> clock_;
};

class OfferingDevice : public HostMemoryDevice {
 public:
  explicit OfferingDevice(std::vector<Offer> offers, std::shared_ptr<OwnClock> clock = nullptr)
      : offers_(std::move(offers)), clock_(std::move(clock)) {}
  DeviceDescription description() const override { return {.name = "offering"}; }
  bool tunable(const Node&) const override { return true; }
  std::vector<KernelCandidate> candidates(const Node&) const override {
    std::vector<KernelCandidate> result;
    for (const Offer& offer : offers_) {
      KernelCandidate candidate;
      candidate.name = offer.name;
      candidate.fallback = offer.fallback;
      candidate.only_tuned = offer.only_tuned;
      candidate.plan = [offer, clock = clock_, asked = asked_](const KernelRequest&) -> KernelMaker {
        ++*asked;
        return [offer, clock] {
          if (offer.lacks_host_memory) throw std::bad_alloc();
          if (offer.fails.has_value()) fail(*offer.fails, "{} fails today", offer.name);
          return std::make_unique<SlowAddition>(microseconds(offer.microseconds), offer.addend, offer.writes,
                                                microseconds(offer.own_microseconds), clock);
        };
      };
      result.push_back(std::move(candidate));
    }
    return result;
  }

  std::shared_ptr<Queue> queue() override { return std::make_shared<ClockedQueue>(clock_); }

  // How many candidates were asked for a refusal.
  int asked() const { return *asked_; }

 private:
  std::vector<Offer> offers_;
  std::shared_ptr<OwnClock> clock_;
  std::shared_ptr<int> asked_ = std::make_shared<int>(0);
};

NodeReport choose(std::vector<Offer> offers, const std::string& file = "", bool measure = true,
                  std::shared_ptr<OwnClock> clock = nullptr, const PassOptions& passes = {}) {
  const auto graph = parse_graph("graph g(input %x: fp32[8]) {\n  %y = exp(%x)\n  output y = %y\n}");
  CompileOptions options;
  options.tune = measure;
  options.tuning_file = file;
  options.passes = passes;
  return compile(*graph, std::make_shared<OfferingDevice>(std::move(offers), std::move(clock)), options)
      ->nodes()
      .front();
}

TEST(Tuner, TakesTheFastest) {
  const NodeReport report = choose({{"slow", 20'000}, {"fast", 0}});
  EXPECT_EQ(report.kernel, "fast");
  EXPECT_GT(report.candidates[0].microseconds, report.candidates[1].microseconds);
}

TEST(Tuner, TimesByTheClockOfADeviceThatHasOne) {
  const auto clock = std::make_shared<OwnClock>();
  const NodeReport report =
      choose({{.name = "launched fast", .own_microseconds = 70},
              {.name = "launched slowly", .microseconds = 20'000, .own_microseconds = 50}},
             "", true, clock);
  EXPECT_EQ(report.kernel, "launched slowly");
  EXPECT_DOUBLE_EQ(report.candidates[0].microseconds, 70);
  EXPECT_DOUBLE_EQ(report.candidates[1].microseconds, 50);
}

TEST(Tuner, TakesALaterCandidateOnlyIfItGainsMoreThanNoise) {
  const auto chosen = [](int first, int second) {
    const std::vector<Offer> offers{{.name = "first", .own_microseconds = first},
                                    {.name = "second", .own_microseconds = second}};
    return choose(offers, "", true, std::make_shared<OwnClock>()).kernel;
  };
  EXPECT_EQ(chosen(1000, 985), "first");
  EXPECT_EQ(chosen(1000, 970), "second");
}

TEST(Tuner, LeavesOutWhatDisagreesWithTheFirstOrWritesNothing) {
  EXPECT_EQ(
      choose({{"right", 20'000}, {.name = "wrong", .addend = 2}, {.name = "idle", .writes = false}}).kernel,
      "right");
}

// To ask it builds what takes long.
TEST(Tuner, AloneAsksAndTakesWhatIsOnlyTuned) {
  const std::vector<Offer> offers{{.name = "tuned", .own_microseconds = 10, .only_tuned = true},
                                  {.name = "usual", .own_microseconds = 100}};
  EXPECT_EQ(choose(offers, "", true, std::make_shared<OwnClock>()).kernel, "tuned");
  // Nothing is remembered: the first of the others.
  testing::TemporaryFolder folder;
  EXPECT_EQ(choose(offers, (folder.path() / "none.json").string(), false).kernel, "usual");
  const auto device = std::make_shared<OfferingDevice>(offers);
  const auto graph = parse_graph("graph g(input %x: fp32[8]) {\n  %y = exp(%x)\n  output y = %y\n}");
  const NodeReport report = compile(*graph, device, {})->nodes().front();
  EXPECT_EQ(report.kernel, "usual");
  EXPECT_EQ(report.candidates.size(), 1u);
  EXPECT_EQ(device->asked(), 1);
}

// Notes the whole numbers that are its last input.
class NotingKernel : public Kernel {
 public:
  NotingKernel(size_t count, std::vector<int32_t>* noted) : count_(count), noted_(*noted) {}
  void run(const KernelArguments& arguments) override {
    const auto* numbers = static_cast<const int32_t*>(arguments.inputs.back());
    noted_.assign(numbers, numbers + count_);
  }

 private:
  size_t count_;
  std::vector<int32_t>& noted_;
};

class NotingDevice : public OfferingDevice {
 public:
  NotingDevice() : OfferingDevice({}) {}
  std::vector<KernelCandidate> candidates(const Node& node) const override {
    const auto count = static_cast<size_t>(node.inputs().back()->type().element_count());
    std::vector<KernelCandidate> result(2);
    for (KernelCandidate& candidate : result) {
      candidate.name = fmt::format("noting {}", &candidate - result.data());
      candidate.plan = [count, noted = noted_](const KernelRequest&) -> KernelMaker {
        return [=] { return std::make_unique<NotingKernel>(count, noted.get()); };
      };
    }
    return result;
  }
  const std::vector<int32_t>& noted() const { return *noted_; }

 private:
  std::shared_ptr<std::vector<int32_t>> noted_ = std::make_shared<std::vector<int32_t>>();
};

// Zeros would hide all keys, and kernels differ in what they make of none.
TEST(Tuner, GivesCountsTheirWholeExtent) {
  const std::string inputs = "(input %q: fp32[2, 1, 3, 4], input %k: fp32[2, 1, 5, 4], input %n: int32[2]) {";
  const std::string attention = "attention(%q, %k, %k, _, %n) {scale = 0.5}";
  for (const std::string& made : {"%y, %s = " + attention + " output y = %y }",
                                  "%y = fused(%q, %k, %n) {kind = \"some\"} body graph body" + inputs +
                                      "%y, %s = " + attention + " output y0 = %y } output y = %y }"}) {
    const auto device = std::make_shared<NotingDevice>();
    CompileOptions options;
    options.tune = true;
    compile(*parse_graph("graph g" + inputs + made), device, options);
    EXPECT_EQ(device->noted(), (std::vector<int32_t>{5, 5})) << made;
  }
}

TEST(Tuner, NeverTimesAFallbackBesideOthers) {
  const NodeReport report = choose({{"slow", 20'000}, {.name = "any", .fallback = true}});
  EXPECT_EQ(report.kernel, "slow");
  EXPECT_EQ(report.candidates[1].microseconds, -1);
  EXPECT_EQ(choose({{.name = "any", .fallback = true}}).kernel, "any");
}

TEST(Tuner, RemembersInItsFileAndMeasuresWhatIsNew) {
  const TemporaryFolder folder;
  const std::string file = (folder.path() / "tuning.json").string();
  EXPECT_EQ(choose({{"first", 20'000}, {"second", 0}}, file).kernel, "second");
  // Not measured again: the first would win now.
  EXPECT_EQ(choose({{"first", 0}, {"second", 20'000}}, file).kernel, "second");
  EXPECT_EQ(choose({{"first", 0}, {"second", 20'000}}, file, /*measure=*/false).kernel, "second");
  EXPECT_EQ(choose({{"first", 0}, {"second", 20'000}, {"third", 20'000}}, file).kernel, "first");
}

// What won where products are rounded, or sums in any order, may be no candidate elsewhere.
TEST(Tuner, RemembersForEachPrecisionAndOrder) {
  const TemporaryFolder folder;
  const std::string file = (folder.path() / "tuning.json").string();
  const auto choose_faster = [&](int first, int second, const PassOptions& passes) {
    const std::vector<Offer> offers{{.name = "first", .own_microseconds = first},
                                    {.name = "second", .own_microseconds = second}};
    return choose(offers, file, true, std::make_shared<OwnClock>(), passes).kernel;
  };
  PassOptions tf32, any_order;
  tf32.precision = Precision::tf32;
  any_order.deterministic = false;
  EXPECT_EQ(choose_faster(1000, 10, {}), "second");
  EXPECT_EQ(choose_faster(10, 1000, any_order), "first");
  EXPECT_EQ(choose_faster(10, 1000, tf32), tf32_allowed() ? "first" : "second");
  EXPECT_EQ(choose_faster(10, 1000, {}), "second");
}

// Lack of memory says nothing of a kernel: the next process measures it.
TEST(Tuner, RemembersNothingWhereMemoryWasLacking) {
  const TemporaryFolder folder;
  const std::string file = (folder.path() / "winners").string();
  const Offer slow{.name = "slow", .microseconds = 2000};
  EXPECT_EQ(choose({slow, {.name = "fast", .fails = ErrorCode::out_of_memory}}, file).kernel, "slow");
  EXPECT_EQ(choose({slow, {.name = "fast", .lacks_host_memory = true}}, file).kernel, "slow");
  EXPECT_EQ(choose({slow, {.name = "fast"}}, file).kernel, "fast");
}

// Neither does a device that has failed: nothing works on it any more.
TEST(Tuner, PassesAFaultOfTheDeviceOnAndRemembersNothing) {
  const TemporaryFolder folder;
  const std::string file = (folder.path() / "winners").string();
  const Offer slow{.name = "slow", .microseconds = 2000};
  EXPECT_ERROR(choose({slow, {.name = "fast", .fails = ErrorCode::device_fault}}, file),
               ErrorCode::device_fault, "fast fails today", "in kernel fast of node 'y': exp of fp32[8]");
  EXPECT_FALSE(fs::exists(file));
  EXPECT_EQ(choose({slow, {.name = "fast"}}, file).kernel, "fast");
}

TEST(Tuner, LeavesOutWhatFailsByItself) {
  const TemporaryFolder folder;
  const std::string file = (folder.path() / "winners").string();
  const Offer slow{.name = "slow", .microseconds = 2000};
  EXPECT_EQ(choose({slow, {.name = "fast", .fails = ErrorCode::unsupported}}, file).kernel, "slow");
  EXPECT_EQ(choose({slow, {.name = "fast"}}, file).kernel, "slow");  // on record
}

// Two processes that tune at once; they would have read the file before either wrote it.
TEST(TuningFile, KeepsWhatOthersAddMeanwhile) {
  const TemporaryFolder folder;
  const fs::path file = folder / "new/tuning.json";
  const auto result = [](int number) { return TuningResult{std::to_string(number), {{"a", 0.5 + number}}}; };
  constexpr int kWriters = 4;
  constexpr int kResults = 10;
  std::vector<pid_t> writers;
  for (int writer = 0; writer < kWriters; ++writer) {
    const pid_t process = ::fork();
    if (process == 0) {
      for (int i = 0; i < kResults; ++i) {
        const int number = writer * kResults + i;
        add_to_tuning_file(file, writer % 2 == 0 ? "even" : "odd",
                           {{std::to_string(number), result(number)}});
      }
      ::_exit(0);
    }
    writers.push_back(process);
  }
  for (const pid_t writer : writers) {
    int status = -1;
    ASSERT_EQ(::waitpid(writer, &status, 0), writer);
    EXPECT_EQ(status, 0);
  }
  const TuningResultsOfDevices found = read_tuning_file(file);
  ASSERT_EQ(found.size(), 2u);
  for (int number = 0; number < kWriters * kResults; ++number) {
    const TuningResults& results = found.at(number / kResults % 2 == 0 ? "even" : "odd");
    EXPECT_EQ(results.at(std::to_string(number)), result(number));
  }
  // No lock and nothing half written beside it.
  EXPECT_EQ(std::distance(fs::directory_iterator(folder / "new"), fs::directory_iterator()), 1);
}

TEST(Tuner, AddsToWhatAnotherProcessHasMeasuredMeanwhile) {
  const TemporaryFolder folder;
  const fs::path file = folder / "tuning.json";
  add_to_tuning_file(file, "another device", {{"node", {"kernel", {{"kernel", 2.5}}}}});
  EXPECT_EQ(choose({{"first", 20'000}, {"second", 0}}, file.string()).kernel, "second");
  const TuningResultsOfDevices found = read_tuning_file(file);
  EXPECT_EQ(found.size(), 2u);
  EXPECT_EQ(found.at("another device").at("node").winner, "kernel");
}

// A limit on file sizes stands in for a full disk.
TEST(Tuner, KeepsTheFileWhenTheDiskIsFull) {
  const TemporaryFolder folder;
  const fs::path file = folder / "tuning.json";
  add_to_tuning_file(file, "device", {{"node", {std::string(2000, 'x'), {}}}});
  const std::string before = read_text_file(file);
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &limit), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{1024, limit.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  EXPECT_EQ(choose({{"first", 20'000}, {"second", 0}}, file.string()).kernel, "second");
  ::setrlimit(RLIMIT_FSIZE, &limit);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(read_text_file(file), before);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator()), 1);
}

TEST(TuningFile, RefusesOtherText) {
  EXPECT_TRUE(parse_tuning_results(R"({"version": 2})").empty());
  for (const std::string& text :
       {std::string("{"), std::string("[]"), std::string(100'000, '['), std::string(R"({"version": 1})"),
        std::string(R"({"version": 1, "devices": {"d": {"n": 1}}})")}) {
    EXPECT_ERROR(parse_tuning_results(text), ErrorCode::invalid_file, "json.exception");
  }
}

TEST(Tuner, RebuildsADamagedFile) {
  const TemporaryFolder folder;
  const std::string file = (folder.path() / "tuning.json").string();
  std::ofstream(file) << "{\"version\": 1, \"devices\": {";
  EXPECT_EQ(choose({{"slow", 20'000}, {"fast", 0}}, file).kernel, "fast");
  EXPECT_EQ(choose({{"slow", 0}, {"fast", 20'000}}, file).kernel, "fast");
}

}  // namespace
}  // namespace tessera::testing
