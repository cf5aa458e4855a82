// A plan at work: one set of weights, and contexts that run it from several threads.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tessera/compile/executable.h"
#include "tessera/infer/plan.h"

namespace tessera::infer {

class Context;

// What contexts share: the plan, and its weights on the device. Copies share them, too. Any thread may use an
// engine.
class Engine {
 public:
  // Loads the weights. Without a device that of the plan is opened, by its name. Throws as Plan::open(),
  // Plan::check() and Device::open(), and Error(out_of_memory).
  explicit Engine(const std::filesystem::path& plan, std::shared_ptr<Device> device = nullptr);

  const Plan& plan() const { return *plan_; }
  const std::shared_ptr<Device>& device() const { return device_; }
  const std::vector<PlanValue>& inputs() const { return plan_->inputs(); }
  const std::vector<PlanValue>& outputs() const { return plan_->outputs(); }

  // A new one: every size is made ready, so that no request waits for that. It may outlive the engine.
  // Throws as Plan::compile() and Executable::bind().
  std::unique_ptr<Context> context() const;

 private:
  std::shared_ptr<const Plan> plan_;
  std::shared_ptr<Device> device_;
  std::shared_ptr<Variables> weights_;
  std::shared_ptr<std::mutex> making_;  // held by who makes a context: the next one finds what it packed
};

// Runs requests on a queue and in a workspace of its own. One thread at a time uses a context; those of one
// engine may run at once.
class Context {
 public:
  // Inputs and outputs by name. Of a plan of several sizes any number of rows: the smallest size that takes
  // them runs, filled up with zeros, and what is more than the largest takes in several runs. Throws
  // Error(invalid_argument) on a missing or unknown input, on one of another type, and on inputs that
  // disagree about the rows.
  std::map<std::string, Tensor> run(const std::map<std::string, Tensor>& inputs);

  // The executable of a size, for who wants to stage inputs, submit or profile.
  Executable& at(const PlanSize& size) const { return *executables_.at(size.batch); }

 private:
  friend class Engine;
  Context(std::shared_ptr<const Plan> plan, const std::shared_ptr<Device>& device,
          const std::shared_ptr<Variables>& weights);

  void check_names(const std::map<std::string, Tensor>& inputs) const;
  int64_t rows_of(const std::map<std::string, Tensor>& inputs) const;

  std::shared_ptr<const Plan> plan_;
  std::map<int64_t, std::unique_ptr<Executable>> executables_;  // by batch
};

}  // namespace tessera::infer
