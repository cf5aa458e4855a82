#include "tasks/row_data.h"

#include "tasks/data_kind.h"
#include "tasks/prefetch.h"

namespace tessera::tasks {
namespace {

data::BatchOptions loading_of(const Options& settings) {
  const Prefetch prefetch = prefetch_of(settings);
  return {.batch_size = settings.integer("train.batch"),
          .shuffle = settings.boolean("data.shuffle"),
          .balanced = settings.get_or("data.balanced", false),
          .seed = static_cast<uint64_t>(settings.integer("train.seed")),
          .workers = prefetch.workers,
          .prefetch = prefetch.batches};
}

}  // namespace

std::vector<Option> with_row_options(std::vector<Option> options) {
  options.push_back({.key = "test_share",
                     .value = 0.1,
                     .documentation = "Of the rows, evenly spread; they are not trained on",
                     .limits = {.low = 0, .high = 0.9, .low_open = true},
                     .resuming = Resuming::fixed});
  options.push_back({.key = "shuffle",
                     .value = true,
                     .documentation = "Whether each epoch visits the rows in a new order",
                     .resuming = Resuming::fixed});
  options.push_back(prefetch_option());
  return options;
}

std::shared_ptr<const data::Source> training_rows(Feeds rows, const Options& settings) {
  return std::make_shared<data::Rows>(std::move(rows), loading_of(settings));
}

std::shared_ptr<const data::Source> rows_in_order(Feeds rows, const Options& settings) {
  data::BatchOptions in_order = loading_of(settings);
  in_order.shuffle = false;
  in_order.balanced = false;
  in_order.drop_last = false;
  return std::make_shared<data::Rows>(std::move(rows), in_order);
}

train::Workload row_workload(nn::Task task, const data::HeldOut& rows, train::EvaluatorMaker evaluator,
                             const Options& settings) {
  return {.task = std::move(task),
          .data = data_name(settings),
          .training = [rows, settings] { return training_rows(rows.training, settings); },
          .test = [rows, settings, evaluator = std::move(evaluator)]() -> train::TestSet {
            return {rows_in_order(rows.test, settings), evaluator};
          }};
}

}  // namespace tessera::tasks
