#include <cstdio>

#include <tessera/tessera.h>
namespace ts = tessera;

int main(int argc, char** argv) {
  const char* folder = argc > 1 ? argv[1] : "/usr/share/datasets/fashion-mnist";
  auto images = [&](ts::data::Split split) {
    return std::make_shared<ts::data::ClassificationDataset>(
        ts::data::load_idx_folder(folder, {.split = split}));
  };
  ts::data::Loader train(images(ts::data::Split::train), {.batch_size = 128});
  ts::data::Loader test(images(ts::data::Split::test),
                        {.batch_size = 128, .shuffle = false, .drop_last = false});

  ts::models::Model model = ts::models::mlp({.classes = 10, .image_size = 28, .channels = 1});
  ts::nn::Task task =
      ts::tasks::image_classification(model, {.loss = ts::nn::cross_entropy({.smoothing = 0.1})});
  ts::train::Trainer trainer(task, {.optimizer = ts::optim::adamw({.learning_rate = 1e-3}),
                                    .precision = ts::Precision::fp32,
                                    .device = ts::Device::open("auto")});
  ts::train::EvaluationPlan plan{.source = &test, .evaluator = ts::tasks::classification_evaluator()};
  ts::train::FitResult result = trainer.fit(train, {.epochs = 2, .evaluations = {plan}});
  ts::save(trainer.checkpoint(), "fashion_mnist.safetensors");
  std::printf("test accuracy %.2f %%\n", 100 * result.history.evaluations.back().results.at("accuracy"));
}
