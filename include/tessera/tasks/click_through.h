// Whether something happens (a click, a late flight), from a few categories and numbers: embedding tables
// with a network over them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "tessera/data/csv.h"
#include "tessera/data/rows.h"
#include "tessera/nn/task.h"
#include "tessera/train/evaluator.h"
#include "tessera/train/prediction.h"

namespace tessera::tasks {

struct ClickThroughOptions {
  std::vector<int64_t> entries;            // of each table: how many different values its category has
  int64_t numbers = 0;                     // beside the categories
  int64_t width = 16;                      // of an embedding
  std::vector<int64_t> hidden = {64, 32};  // of the layers over the interactions
};

// Naumov et al. 2019 (arXiv:1906.00091): an embedding for each category, one for the numbers, the dot
// products of all pairs of them, and layers over those and the numbers' embedding. Tables are updated by
// rows.
//   inputs:     categories int32 [batch, tables], numbers fp32 [batch, numbers], labels fp32 [batch] of 0 and
//   1 objective:  loss, the binary cross-entropy served:     probabilities fp32 [batch]
// Throws Error(invalid_argument) without a table or with an empty one.
nn::Task click_through(const ClickThroughOptions& options);

// Which columns of a table of comma-separated values say what.
struct ClickThroughColumns {
  std::vector<std::string> categories;
  std::vector<std::string> numbers;  // taken to a mean of 0 and a deviation of 1; what is no number becomes 0
  std::string label;                 // rows without a number there are left out
  double above = 0.5;                // it happened where the label is larger
  double test_share = 0.1;           // of the rows, held out evenly
};
struct ClickThroughTable {
  std::vector<int64_t> entries;  // different values of each category
  data::HeldOut rows;            // the task's inputs
};
// Throws as data::read_csv(), and Error(invalid_file) where no row has a label.
ClickThroughTable read_click_through_table(const std::filesystem::path& path,
                                           const ClickThroughColumns& columns);
// The same of what reads the named columns of some other table, which messages call `name`.
using ColumnReader = std::function<std::vector<data::TextColumn>(const std::vector<std::string>& columns)>;
ClickThroughTable read_click_through_table(const ColumnReader& read, const std::string& name,
                                           const ClickThroughColumns& columns);

// "auc", the area under the receiver operating characteristic: how often one that happens is thought likelier
// than one that does not, ties counting half; and "loss".
train::EvaluatorMaker click_through_evaluator();

// How likely each is, and whether it happened where the batches have labels.
train::PredictionTextMaker click_through_text();

}  // namespace tessera::tasks
