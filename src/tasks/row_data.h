// Rows in memory as recipes ask for them, for whichever task: the end of the section [data].
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tessera/base/option.h"
#include "tessera/data/rows.h"
#include "tessera/train/workload.h"

namespace tessera::tasks {

// Those of a task, and then data.test_share, data.shuffle and data.prefetch.
std::vector<Option> with_row_options(std::vector<Option> options);
// Keys of texts that must not be empty.
std::vector<Contradiction> check_given(const Options& settings, const std::vector<std::string>& keys);
// A source of the rows in their order, the last batch filled up, in batches as the recipe says.
std::shared_ptr<const data::Source> rows_in_order(Feeds rows, const Options& settings);
// Trains on rows and tests on the others, in batches as the recipe says; named after data.path. The rows are
// asked for when they are needed, each time.
train::Workload row_workload(nn::Task task, std::function<data::HeldOut()> rows,
                             train::EvaluatorMaker evaluator, const Options& settings);

}  // namespace tessera::tasks
