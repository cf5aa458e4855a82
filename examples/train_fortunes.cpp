// Gaps in text: ./train_fortunes [TEXTS [FOLDER]]. Begun again, it goes on where it was.
#include <cstdio>
#include <filesystem>

#include <tessera/tessera.h>
namespace ts = tessera;

int main(int argc, char** argv) {
  const std::filesystem::path folder = argc > 2 ? argv[2] : "runs/fortunes";
  const ts::Tensor tokens = ts::data::read_byte_windows(argc > 1 ? argv[1] : "/usr/share/games/fortunes", 64);
  const ts::data::HeldOut rows = ts::data::hold_out({{"tokens", tokens}}, 0.1);
  const ts::data::Rows train(rows.training, {.batch_size = 32});
  const ts::data::Rows test(rows.test, {.batch_size = 32, .shuffle = false, .drop_last = false});

  // Two losses: what was masked, and whether two halves stand in their order.
  const ts::nn::Task task = ts::tasks::masked_language_model({.tokens = 64, .masked = 0.2});
  ts::train::Trainer trainer(task, {.optimizer = ts::optim::adamw({.learning_rate = 3e-3})});
  if (exists(folder / "last.safetensors"))
    trainer.restore(ts::load_checkpoint(folder / "last.safetensors"), "last.safetensors");
  ts::train::EvaluationPlan plan{.source = &test, .evaluator = ts::tasks::masked_language_model_evaluator()};
  const ts::train::FitResult result =
      trainer.fit(train, {.epochs = 2, .evaluations = {plan}, .checkpoints = folder});
  const ts::train::Numbers last = result.history.evaluations.back().results;
  std::printf("masked %.1f %%, order %.1f %%\n", 100 * last.at("masked_accuracy"),
              100 * last.at("order_accuracy"));
}
