// Pictures out of noise: ./train_gan [PICTURES [FOLDER]]. Begun again, it goes on where it was.
#include <cstdio>
#include <filesystem>

#include <tessera/tessera.h>
namespace ts = tessera;

int main(int argc, char** argv) {
  const std::filesystem::path folder = argc > 2 ? argv[2] : "runs/gan";
  const auto pictures = [&](ts::data::Split split, bool shuffle) {
    const auto set = std::make_shared<ts::data::ClassificationDataset>(ts::data::load_idx_folder(
        argc > 1 ? argv[1] : "/usr/share/datasets/fashion-mnist", {.split = split}));
    return ts::data::Loader(set, {.batch_size = 64, .shuffle = shuffle, .drop_last = shuffle});
  };
  const ts::data::Loader train = pictures(ts::data::Split::train, true);
  const ts::data::Loader test = pictures(ts::data::Split::test, false);

  // The discriminator and the generator in turn, each with an optimizer of its own.
  const ts::optim::Optimizer adam = ts::optim::adam({.learning_rate = 2e-4, .beta1 = 0.5});
  ts::train::Trainer trainer(ts::tasks::gan(), {.phases = ts::tasks::gan_phases(adam)});
  if (exists(folder / "last.safetensors"))
    trainer.restore(ts::load_checkpoint(folder / "last.safetensors"), "last.safetensors");
  ts::train::EvaluationPlan plan{.source = &test, .evaluator = ts::tasks::gan_evaluator()};
  const ts::train::FitResult result =
      trainer.fit(train, {.epochs = 1, .evaluations = {plan}, .checkpoints = folder});
  const ts::train::Numbers last = result.history.evaluations.back().results;
  std::printf("distance of the means %.3f, spread %.3f\n", last.at("mean_distance"), last.at("spread"));
}
