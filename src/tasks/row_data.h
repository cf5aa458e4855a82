// Rows in memory as recipes ask for them, for whichever task: the end of the section [data].
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tessera/base/option.h"
#include "tessera/data/rows.h"
#include "tessera/train/workload.h"

namespace tessera::tasks {

// Those of a task, and then data.test_share, data.shuffle and data.prefetch.
std::vector<Option> with_row_options(std::vector<Option> options);
// A source of the rows as they are trained on, in batches as the recipe says.
std::shared_ptr<const data::Source> training_rows(Feeds rows, const Options& settings);
// A source of the rows in their order, the last batch filled up, in batches as the recipe says.
std::shared_ptr<const data::Source> rows_in_order(Feeds rows, const Options& settings);
// Trains on rows and tests on the others, in batches as the recipe says; named after the data.
train::Workload row_workload(nn::Task task, const data::HeldOut& rows, train::EvaluatorMaker evaluator,
                             const Options& settings);

}  // namespace tessera::tasks
