// The parameters and states that an executable reads and updates: shared with its caller, or its own.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "tessera/compile/executable.h"

#include "compile/schedule.h"
#include "compile/storage.h"

namespace tessera {

class RunVariables {
 public:
  // All must outlive this.
  RunVariables(const Graph& graph, const Schedule& schedule, const StoragePlan& plan,
               std::shared_ptr<Device> device, std::shared_ptr<Queue> queue);

  // As Executable::bind().
  void share(std::shared_ptr<Variables> variables);
  // As Executable::load(). They come and go with the calls of before_once() and after_once() for each node
  // that runs once, in their order, and stay from before_runs() on.
  void own(VariableSource value);
  // What is enqueued from now on comes after what other executables have done with the variables.
  void order() const { variables_->order(*queue_, updates()); }
  void before_run() const {
    order();
    if (updates()) variables_->note_change();
  }
  // As those of Variables.
  std::shared_ptr<void> derived(const std::string& key) const { return variables_->derived(key); }
  void keep_derived(const std::string& key, const std::shared_ptr<void>& memory) {
    variables_->keep_derived(key, memory);
  }
  bool bound() const { return variables_ != nullptr; }
  void unbind();

  void before_once(const Node& node);
  void after_once(const Node& node);
  void before_runs();

  void* pointer(const std::string& name) const { return variables_->pointer(name); }

 private:
  void fetch(const std::string& name);
  bool updates() const { return !graph_.updates().empty(); }

  const Graph& graph_;
  const StoragePlan& plan_;
  std::shared_ptr<Device> device_;
  std::shared_ptr<Queue> queue_;
  std::map<std::string, const Node*> last_readers_;  // of those that runs do not read
  std::shared_ptr<Variables> variables_;
  VariableSource value_;  // where they are its own, until runs can begin
};

}  // namespace tessera
