// A task with its data: all that a training needs to know of what is trained.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tessera/data/source.h"
#include "tessera/nn/task.h"
#include "tessera/train/evaluator.h"
#include "tessera/train/generation.h"
#include "tessera/train/phase.h"
#include "tessera/train/prediction.h"

namespace tessera::train {

// What a network is measured on, and how.
struct TestSet {
  std::shared_ptr<const data::Source> source;
  EvaluatorMaker evaluator;
};

// What a network is asked, and how people read its answers.
struct PredictionSet {
  std::shared_ptr<const data::Source> source;
  PredictionTextMaker text;
};

// What whoever asks for translations wants, in place of what the recipe says.
struct SearchWishes {
  std::optional<int64_t> beams = {};
  std::optional<double> length_penalty = {};
};

// The data is opened when it is asked for: a finished run needs no training data. All throw Error(io) or
// Error(invalid_file) naming what is missing or broken.
struct Workload {
  nn::Task task;
  std::string data;  // what people call the data: "Fashion-MNIST"
  std::function<std::shared_ptr<const data::Source>()> training;
  std::function<TestSet()> test;
  // How it is trained, by optimizers like the one given; empty: in one phase, of all parameters.
  std::function<std::vector<Phase>(const optim::Optimizer& optimizer)> phases = {};
  // What a finished run shows of what it serves; empty: what it gives for test data, in numbers.
  std::function<PredictionSet()> predictions = {};
  // The same of files that somebody names; empty: such a workload has none.
  std::function<PredictionSet(const std::vector<std::string>& files)> file_predictions = {};
  // The same of texts that somebody gives; empty: such a workload takes none.
  std::function<PredictionSet(const std::vector<std::string>& texts)> text_predictions = {};
  // How a finished run goes on with text; empty: its network does not.
  std::function<TextContinuation()> continuation = {};
  // A translation of each text, by a finished run; empty: its network translates none.
  std::function<std::vector<std::string>(const Serving& serve, const SearchWishes& wishes,
                                         const std::vector<std::string>& texts)>
      translation = {};
  // The weights of a file to start from, as a checkpoint has them, where it may be one of another network or
  // hold other names; variables that it lacks start at random. Empty: a file must hold the whole network.
  std::function<std::map<std::string, Tensor>(const std::filesystem::path& path)> starting_weights = {};
  // Writes what other programs want to find in a finished run's folder, beside model.safetensors.
  std::function<void(const std::filesystem::path& folder)> write_beside_weights = {};
  // What people call the numbers of each row that is served, in their order; empty: they have no names.
  std::function<std::vector<std::string>()> output_names = {};
};

}  // namespace tessera::train
