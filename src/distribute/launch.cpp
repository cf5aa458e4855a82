#include "tessera/distribute/launch.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <thread>

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tessera/base/clock.h"
#include "tessera/base/error.h"
#include "tessera/distribute/registry.h"

#include "distribute/local.h"
#include "distribute/rank_process.h"

namespace tessera::distribute {
namespace {

constexpr auto kLook = std::chrono::milliseconds(20);
constexpr int kRankFailed = 10;  // the exit code of a rank that ended because of another one
constexpr int kInterrupted = 130;

class Launch {
 public:
  explicit Launch(const LaunchOptions& options)
      : options_(options), file_(::memfd_create("tessera-ranks", 0)) {
    require(options.ranks > 0 && options.ranks <= kMostRanks, ErrorCode::invalid_argument,
            "{} ranks cannot be started: there may be from 1 to {}", options.ranks, kMostRanks);
    require(options.places.empty() || std::ssize(options.places) == options.ranks,
            ErrorCode::invalid_argument, "{} ranks have {} places", options.ranks, options.places.size());
    require(file_ >= 0, ErrorCode::io, "no memory that ranks share: {}", std::strerror(errno));
    memory_ = map_shared(file_, GroupMemory::bytes(options.ranks), "memory that ranks share");
  }
  ~Launch() { ::close(file_); }
  Launch(const Launch&) = delete;
  Launch& operator=(const Launch&) = delete;

  LaunchResult run() {
    for (int64_t rank = 0; rank < options_.ranks; ++rank) start(rank);
    while (!all_ended()) {
      std::this_thread::sleep_for(kLook);
      attention_.look();
      for (const auto& rank : ranks_) rank->read_errors();
      pass_on_stop();
      if (failure_.empty()) look_for_failure();
      if (failing_ && seconds_since(failed_) > kGraceSeconds) end_all();
    }
    if (failure_.empty()) look_for_failure();
    return result();
  }

 private:
  GroupHeader& header() const { return *static_cast<GroupHeader*>(memory_.get()); }

  void start(int64_t rank) {
    RankStart start{.rank = rank, .command = options_.command};
    const auto set = [&](const char* name, const std::string& value) {
      start.environment.push_back(fmt::format("{}={}", name, value));
    };
    set(kRankVariable, std::to_string(rank));
    set(kRanksVariable, std::to_string(options_.ranks));
    set(kPlaceVariable,
        std::to_string(options_.places.empty() ? rank : options_.places[static_cast<size_t>(rank)]));
    set(kCommunicatorVariable, kLocal);
    set(kAddressVariable, fmt::format("/proc/self/fd/{}", file_));
    set(kHeartbeatVariable, fmt::format("{}", options_.heartbeat_seconds));
    set(kRestartedVariable, options_.restarted ? "1" : "0");
    // Each with all processors would be slower than one alone.
    const auto processors = static_cast<int64_t>(std::thread::hardware_concurrency());
    if (std::getenv("OMP_NUM_THREADS") == nullptr)
      set("OMP_NUM_THREADS", std::to_string(std::max<int64_t>(1, processors / options_.ranks)));
    ranks_.push_back(std::make_unique<RankProcess>(start));
  }

  bool all_ended() {
    return std::all_of(ranks_.begin(), ranks_.end(),
                       [](const auto& rank) { return rank->status().has_value(); });
  }

  void pass_on_stop() {
    if (stopping_ || options_.stop == nullptr || !options_.stop->load()) return;
    stopping_ = true;
    for (const auto& rank : ranks_) rank->send(SIGTERM);
  }

  static bool failed_by_itself(RankProcess& rank) {
    return !WIFEXITED(*rank.status()) || WEXITSTATUS(*rank.status()) != kRankFailed;
  }

  // The first that failed by itself. One that ended because of another is no reason: the other one is seen
  // soon, or has said why.
  void look_for_failure() {
    // Asked first: who ends while the others are looked at has its turn next time.
    const bool ended = all_ended();
    RankProcess* follower = nullptr;
    for (const auto& rank : ranks_) {
      if (!rank->failed()) continue;
      if (failed_by_itself(*rank)) return fail_because(*rank);
      follower = rank.get();
    }
    if (follower != nullptr) {
      if (ended && code_ == 0) return fail_because(*follower);
      begin_to_fail();
    }
    for (const auto& rank : ranks_) {
      if (rank->status().has_value()) continue;
      const std::string silence =
          silence_of(header().signs_of(options_.ranks), rank->rank(), options_.heartbeat_seconds, attention_);
      if (silence.empty()) continue;
      of_the_machine_ = true;
      lost_ = rank->rank();
      code_ = kRankFailed;
      failure_ = silence;
      abort_group(header(), silence);
      begin_to_fail();
      return;
    }
  }

  void fail_because(RankProcess& rank) {
    const bool was_killed = !WIFEXITED(*rank.status());
    code_ = was_killed ? kRankFailed : WEXITSTATUS(*rank.status());
    of_the_machine_ = was_killed || code_ == kRankFailed;
    if (was_killed) lost_ = rank.rank();
    abort_group(header(), rank.end());
    // What the rank told the others says more than how it ended, unless it was killed.
    failure_ = was_killed ? rank.end() : abort_reason(header());
    begin_to_fail();
  }

  void begin_to_fail() {
    if (failing_) return;
    failing_ = true;
    failed_ = Clock::now();
  }

  void end_all() {
    for (const auto& rank : ranks_) rank->send(SIGKILL);
  }

  LaunchResult result() {
    if (failure_.empty()) {
      for (const auto& rank : ranks_) std::fputs(rank->complaints().c_str(), stderr);
      const bool interrupted = std::any_of(ranks_.begin(), ranks_.end(), [](const auto& rank) {
        return WEXITSTATUS(*rank->status()) == kInterrupted;
      });
      return {.code = interrupted ? kInterrupted : 0};
    }
    return {code_, failure_, of_the_machine_, lost_};
  }

  const LaunchOptions& options_;
  const int file_;
  std::shared_ptr<void> memory_;
  Attention attention_;
  std::vector<std::unique_ptr<RankProcess>> ranks_;
  bool stopping_ = false;
  bool failing_ = false;
  Clock::time_point failed_;
  int code_ = 0;
  std::string failure_;
  bool of_the_machine_ = false;
  std::optional<int64_t> lost_;
};

}  // namespace

LaunchResult launch(const LaunchOptions& options) {
  return Launch(options).run();
}

}  // namespace tessera::distribute
