// What bench, explain and profile look at: a network by name, one in a file, or the step of a recipe.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "tessera/compile/executable.h"
#include "tessera/train/step.h"

#include "cli/model_options.h"

namespace tessera::cli {

// A training step or the inference graph, compiled.
struct CompiledModel {
  std::string name;
  train::StepGraph step;
  std::shared_ptr<Device> device;
  std::string fallback;  // why `auto` took no GPU, or ""
  std::unique_ptr<Executable> executable;
  int64_t batch = 0;
  std::map<std::string, Tensor> weights = {};  // of a network in a file
  double opening_seconds = 0;                  // that the device took
};

class Subject {
 public:
  explicit Subject(const ModelArguments& arguments) : arguments_(arguments) {}
  virtual ~Subject() = default;

  const ModelArguments& arguments() const { return arguments_; }
  // What a row of a batch is, in the plural.
  virtual std::string samples() const = 0;
  // Of a training step: StepOptions::accumulate and StepOptions::local_steps.
  virtual int64_t accumulated_batches() const { return 1; }
  virtual int64_t local_steps() const { return 1; }

  // In that workspace, on its device, or in one of its own.
  virtual CompiledModel compile(train::StepKind kind = train::StepKind::updating,
                                std::shared_ptr<Workspace> workspace = nullptr) const = 0;
  // A value for each input of a run.
  virtual Feeds inputs(const CompiledModel& compiled) const = 0;
  // Gives another batch at each call, read by ModelArguments::loader_workers threads into memory that the
  // device takes it from. Throws Error(invalid_argument) where there is nothing to read.
  virtual std::function<RunFeeds()> loader(const CompiledModel& compiled) const;

 protected:
  // Names what is compiled, and opens its device: that of the workspace, if there is one, or that of the
  // name.
  void open_device(CompiledModel& compiled, const std::shared_ptr<Workspace>& workspace,
                   const std::string& device) const;
  void open_device(CompiledModel& compiled, const std::shared_ptr<Workspace>& workspace) const {
    open_device(compiled, workspace, arguments_.device);
  }
  static void compile_graph(CompiledModel& compiled, CompileOptions options,
                            std::shared_ptr<Workspace> workspace);

 private:
  ModelArguments arguments_;
};

// Throws Error(invalid_argument) for options that are of another kind of subject.
std::unique_ptr<Subject> open_subject(const ModelArguments& arguments);

// A file's, or what training begins with. Throws Error(invalid_argument) where nothing says it.
Tensor starting_value(const CompiledModel& compiled, const std::string& name);

// A tensor for each input that a run takes, filled one by one.
Feeds make_inputs(const Graph& graph, const std::function<void(const Value& input, Tensor& tensor)>& fill);

// Random numbers that follow from the name, whole ones below a limit.
void fill_synthetic(Tensor& tensor, const std::string& name, int64_t limit);
// The same for all inputs; a learning rate is kLearningRate.
Feeds synthetic_inputs(const Graph& graph, int64_t limit);

// Loads variables, and stages inputs where the device reads them: runs need none then.
void make_ready(const Subject& subject, const CompiledModel& compiled);

}  // namespace tessera::cli
