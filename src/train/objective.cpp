#include "train/objective.h"

#include <vector>

#include <fmt/ranges.h>

#include "tessera/base/error.h"
#include "tessera/base/text.h"

namespace tessera::train {
namespace {

// Whichever is trained.
std::vector<std::string> all_objectives(const nn::Task& task, const SymbolBindings& sizes) {
  Graph graph;
  nn::Context context(graph, nn::Mode::training);
  std::vector<std::string> names;
  for (const nn::Measure& measure : task.training(context, nn::add_inputs(graph, task, sizes)).objectives)
    names.push_back(measure.name);
  return names;
}

}  // namespace

const nn::Measure& objective_of(const nn::Task& task, const nn::Training& training, const std::string& wanted,
                                const SymbolBindings& sizes) {
  for (const nn::Measure& measure : training.objectives) {
    if (measure.name == wanted || (wanted.empty() && training.objectives.size() == 1)) return measure;
  }
  const std::vector<std::string> names = all_objectives(task, sizes);
  fail(ErrorCode::invalid_argument, "{} has no objective '{}'{} (there are: {})", task.name, wanted,
       did_you_mean(wanted, names), fmt::join(names, ", "));
}

}  // namespace tessera::train
