// A device in the host's memory whose collectives go on beside the rest of a run, as late as they may.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tessera/compile/device_collectives.h"
#include "tessera/compile/host_memory.h"
#include "tessera/compile/reference_kernel.h"
#include "tessera/graph/operator.h"

namespace tessera::testing {

// What it did, one word each: operators by their names, "fork", "wait", and those of the lane as
// "(all_reduce)".
using LaneLog = std::vector<std::string>;

class LateLane : public HostQueue {
 public:
  // A point after so many pieces of work.
  class Point : public HostEvent {
   public:
    Point(LateLane& lane, size_t count) : lane_(lane), count_(count) {}
    void wait() const override { lane_.work_until(count_); }

   private:
    LateLane& lane_;
    size_t count_;
  };

  explicit LateLane(std::shared_ptr<LaneLog> log) : log_(std::move(log)) {}
  void defer(std::function<void()> work) { work_.push_back(std::move(work)); }
  std::shared_ptr<Event> mark() override { return std::make_shared<Point>(*this, work_.size()); }
  void wait_for(const Event&) override { log_->emplace_back("fork"); }
  void synchronize() override { work_until(work_.size()); }
  std::unique_ptr<DeviceTimer> timer(size_t) override;

 private:
  void work_until(size_t count) {
    for (; done_ < count; ++done_) work_[done_]();
  }

  std::shared_ptr<LaneLog> log_;
  std::vector<std::function<void()>> work_;
  size_t done_ = 0;
};

// The host's time when the work before a mark is done.
class LaneTimer : public DeviceTimer {
 public:
  explicit LaneTimer(LateLane* lane) : lane_(lane) {}
  void mark() override {
    const auto take = [this] { points_.push_back(Clock::now()); };
    lane_ != nullptr ? lane_->defer(take) : take();
  }
  std::vector<Clock::time_point> points() override {
    if (lane_ != nullptr) lane_->synchronize();
    return points_;
  }

 private:
  LateLane* lane_;  // null: all that is enqueued is done at once
  std::vector<Clock::time_point> points_;
};

inline std::unique_ptr<DeviceTimer> LateLane::timer(size_t) {
  return std::make_unique<LaneTimer>(this);
}

class LaneDevice : public HostMemoryDevice, public DeviceCollectives {
 public:
  explicit LaneDevice(bool has_lane = true) : has_lane_(has_lane) {}

  DeviceDescription description() const override { return {.name = "lane", .versions = {}}; }
  bool host_accessible() const override { return false; }
  std::shared_ptr<tessera::Queue> queue() override { return std::make_shared<Queue>(has_lane_, log); }
  std::vector<KernelCandidate> candidates(const Node&) const override {
    return {{.name = "logged", .plan = [log = log](const KernelRequest& request) -> KernelMaker {
               return [log, &request] { return std::make_unique<LoggedKernel>(request, log); };
             }}};
  }

  void connect(const std::shared_ptr<Communicator>&, int64_t) override { ++connections; }
  std::string refusal(const Node& node, const Communicator*) const override {
    return node.operator_name() == "all_reduce" ? "" : "it adds up only";
  }
  KernelCandidate collective_candidate() const override {
    return {.name = "late",
            .plan = [this](const KernelRequest& request) -> std::variant<Refusal, KernelMaker> {
              if (std::string reason = refusal(request.node, nullptr); !reason.empty())
                return Refusal{reason};
              return KernelMaker(
                  [log = log, &node = request.node] { return std::make_unique<Doubling>(node, log); });
            }};
  }
  std::string collective_library() const override { return "none"; }

  std::shared_ptr<LaneLog> log = std::make_shared<LaneLog>();
  int connections = 0;

 private:
  class Queue : public HostQueue {
   public:
    Queue(bool has_lane, std::shared_ptr<LaneLog> log) : log_(std::move(log)) {
      if (has_lane) lane_ = std::make_unique<LateLane>(log_);
    }
    ~Queue() override = default;
    Queue(const Queue&) = delete;
    Queue& operator=(const Queue&) = delete;
    tessera::Queue* lane() override { return lane_.get(); }
    std::unique_ptr<DeviceTimer> timer(size_t) override { return std::make_unique<LaneTimer>(nullptr); }
    void wait_for(const Event& event) override {
      log_->emplace_back("wait");
      event.wait();
    }
    void synchronize() override {
      if (lane_ != nullptr) lane_->synchronize();
    }
    std::unique_ptr<Recording> record(const std::function<void()>& work) override {
      return std::make_unique<Repeated>(work);
    }

   private:
    class Repeated : public Recording {
     public:
      explicit Repeated(std::function<void()> work) : work_(std::move(work)) {}
      void launch() override { work_(); }

     private:
      std::function<void()> work_;
    };

    std::shared_ptr<LaneLog> log_;
    std::unique_ptr<LateLane> lane_;
  };

  class LoggedKernel : public Kernel {
   public:
    LoggedKernel(const KernelRequest& request, std::shared_ptr<LaneLog> log)
        : kernel_(reference_candidate().create(request)),
          name_(request.node.operator_name()),
          log_(std::move(log)) {}
    void run(const KernelArguments& arguments) override {
      log_->push_back(name_);
      kernel_->run(arguments);
    }

   private:
    std::unique_ptr<Kernel> kernel_;
    std::string name_;
    std::shared_ptr<LaneLog> log_;
  };

  // What two ranks with the same values add up to.
  class Doubling : public Kernel {
   public:
    Doubling(const Node& node, std::shared_ptr<LaneLog> log) : node_(node), log_(std::move(log)) {}
    bool may_overwrite(size_t output, size_t input) const override { return output == input; }
    void run(const KernelArguments& arguments) override {
      const std::vector<const void*> inputs(arguments.inputs.begin(), arguments.inputs.end());
      const std::vector<void*> outputs(arguments.outputs.begin(), arguments.outputs.end());
      const auto work = [this, inputs, outputs] { add(inputs, outputs); };
      auto* const lane = dynamic_cast<LateLane*>(&arguments.queue);
      lane != nullptr ? lane->defer(work) : work();
    }

   private:
    void add(const std::vector<const void*>& inputs, const std::vector<void*>& outputs) {
      log_->emplace_back("(all_reduce)");
      for (size_t i = 0; i < inputs.size(); ++i) {
        const auto* const x = static_cast<const float*>(inputs[i]);
        auto* const y = static_cast<float*>(outputs[i]);
        for (int64_t e = 0; e < node_.input(i)->type().element_count(); ++e) y[e] = 2 * x[e];
      }
    }

    const Node& node_;
    std::shared_ptr<LaneLog> log_;
  };

  bool has_lane_;
};

}  // namespace tessera::testing
