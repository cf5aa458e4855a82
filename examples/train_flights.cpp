// Which flights arrive late: ./train_flights [TABLE [FOLDER]]. Begun again, it goes on where it was.
#include <cstdio>
#include <filesystem>

#include <tessera/tessera.h>
namespace ts = tessera;

int main(int argc, char** argv) {
  const std::filesystem::path folder = argc > 2 ? argv[2] : "runs/flights";
  const ts::tasks::ClickThroughTable table = ts::tasks::read_click_through_table(
      argc > 1 ? argv[1] : "data/nycflights13/flights.csv",
      {.categories = {"month", "day", "hour", "carrier", "origin", "dest", "tailnum"},
       .numbers = {"sched_dep_time", "sched_arr_time", "distance"},
       .label = "arr_delay",
       .above = 15});
  const ts::data::Rows train(table.rows.training, {.batch_size = 512});
  const ts::data::Rows test(table.rows.test, {.batch_size = 512, .shuffle = false, .drop_last = false});

  // Tables of embeddings, whose rows are updated where a batch reads them.
  const ts::nn::Task task = ts::tasks::click_through({.entries = table.entries, .numbers = 3});
  ts::train::Trainer trainer(task, {.optimizer = ts::optim::adam({.learning_rate = 2e-3})});
  if (exists(folder / "last.safetensors"))
    trainer.restore(ts::load_checkpoint(folder / "last.safetensors"), "last.safetensors");
  ts::train::EvaluationPlan plan{.source = &test, .evaluator = ts::tasks::click_through_evaluator()};
  const ts::train::FitResult result =
      trainer.fit(train, {.epochs = 2, .evaluations = {plan}, .checkpoints = folder});
  std::printf("area under the curve %.4f\n", result.history.evaluations.back().results.at("auc"));
}
