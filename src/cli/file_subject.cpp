#include "cli/file_subject.h"

#include "tessera/base/error.h"

#include "cli/network_file.h"
#include "cli/plan_subject.h"

namespace tessera::cli {
namespace {

// How many samples a run of the graph has: the first extent of its first input, since a file does not say.
int64_t leading_extent(const Graph& graph) {
  for (const auto& input : graph.inputs()) {
    if (input->role() == InputRole::input && input->type().rank() > 0)
      return input->type().static_shape().front();
  }
  return 1;
}

class FileSubject : public Subject {
 public:
  using Subject::Subject;

  std::string samples() const override { return "samples"; }

  CompiledModel compile(train::StepKind /*kind*/, std::shared_ptr<Workspace> workspace) const override {
    const std::string& model = arguments().model;
    require(!arguments().train, ErrorCode::invalid_argument, "--train: '{}' is a network for inference",
            model);
    NetworkFile file =
        network_format_of(model)->read(model, {.batch = arguments().batch, .others = arguments().sizes});
    CompiledModel result;
    result.batch = leading_extent(*file.graph);
    result.step.graph = std::move(file.graph);
    result.weights = std::move(file.weights);
    open_device(result, workspace);
    compile_graph(result, compile_options_of(arguments()), std::move(workspace));
    return result;
  }

  Feeds inputs(const CompiledModel& compiled) const override {
    return synthetic_inputs(*compiled.step.graph, kSyntheticLimit);
  }
};

}  // namespace

bool is_network_file(const std::string& model) {
  return is_plan_file(model) || network_format_of(model) != nullptr;
}

std::unique_ptr<Subject> open_network_file(const ModelArguments& arguments) {
  if (is_plan_file(arguments.model)) return open_plan(arguments);
  return std::make_unique<FileSubject>(arguments);
}

}  // namespace tessera::cli
