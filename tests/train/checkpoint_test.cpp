// Checkpoints: complete or not at all, in torchvision's layout, and clear about what does not fit.
#include "tessera/train/checkpoint.h"

#include <csignal>
#include <fstream>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tessera/base/file.h"

#include "support/expect_error.h"
#include "support/temporary_folder.h"
#include "train/tiny.h"

namespace tessera::testing {
namespace {

using train::Trainer;
using train::TrainerOptions;

TrainerOptions options_on_reference() {
  TrainerOptions options;
  options.device = Device::reference();
  return options;
}

std::vector<std::string> files_in(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    names.push_back(entry.path().filename().string());
  return names;
}

// Two tensors that say in every element which save they are of.
Checkpoint numbered(int64_t number) {
  const auto value = static_cast<double>(number);
  return {{{"a", Tensor::full(DataType::fp32, {1 << 18}, value)},
           {"b", Tensor::full(DataType::int64, {9}, value)}},
          {{"number", std::to_string(number)}}};
}

// Saves for ever over one file; never returns.
[[noreturn]] void save_in_a_loop(const std::filesystem::path& file) {
  for (int64_t number = 1;; ++number) save(numbered(number), file);
}

TEST(Checkpoint, SurvivesAKillDuringASave) {
  const TemporaryFolder folder;
  const auto file = folder / "last.safetensors";
  save(numbered(0), file);
  for (int round = 0; round < 12; ++round) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) save_in_a_loop(file);
    ::usleep(static_cast<useconds_t>(3000 + 1700 * round));
    ASSERT_EQ(::kill(child, SIGKILL), 0);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status));
    const Checkpoint read = load_checkpoint(file);  // the last or the one before, whole
    const double number = std::stod(read.metadata.at("number"));
    for (const auto& [name, tensor] : read.tensors) {
      EXPECT_TRUE(tensor.identical(Tensor::full(tensor.data_type(), tensor.shape(), number))) << name;
    }
  }
  save(numbered(1), file);
  EXPECT_EQ(files_in(folder.path()),
            std::vector<std::string>{"last.safetensors"});  // no leavings of the dead
}

TEST(Checkpoint, WeightsGoRoundInTorchvisionsLayout) {
  const TemporaryFolder folder;
  Trainer first(tiny_resnet(), options_on_reference());
  first.fit(tiny_loader(), {});
  save(first.checkpoint(), folder / "model.safetensors");
  const Checkpoint file = load_checkpoint(folder / "model.safetensors");
  EXPECT_EQ(file.metadata.at("model"), "resnet_small");
  EXPECT_EQ(file.tensors.at("layer2.0.conv1.weight").shape(),
            (Shape{8, 4, 3, 3}));  // [out, in, height, width]
  EXPECT_TRUE(file.tensors.contains("layer2.0.bn1.running_var"));
  EXPECT_FALSE(file.tensors.contains("fc.weight/momentum"));

  TrainerOptions options = options_on_reference();
  options.seed = 5;
  Trainer second(tiny_resnet(), options);
  second.load_weights(folder / "model.safetensors");
  EXPECT_TRUE(different_tensors(second.checkpoint().tensors, file.tensors).empty());
  const data::Loader evaluation = tiny_evaluation();
  EXPECT_EQ(results_on(evaluation, first), results_on(evaluation, second));
}

TEST(Checkpoint, TorchvisionsCountersAreIgnored) {
  const TemporaryFolder folder;
  Trainer trainer(tiny_resnet(), options_on_reference());
  Checkpoint weights = trainer.checkpoint();
  weights.tensors["bn1.num_batches_tracked"] = Tensor::scalar(DataType::int64, 17);
  save(weights, folder / "torch.safetensors");
  trainer.load_weights(folder / "torch.safetensors");
}

TEST(Checkpoint, AveragesAreWhatIsSavedAndEvaluated) {
  TrainerOptions options = options_on_reference();
  options.ema_decay = 0.9;
  Trainer trainer(tiny_perceptron(), options);
  trainer.fit(tiny_loader(), {.epochs = 2});
  const Checkpoint state = trainer.training_state();
  const Checkpoint weights = trainer.checkpoint();
  EXPECT_TRUE(weights.tensors.at("fc2.weight").identical(state.tensors.at("ema/fc2.weight")));
  EXPECT_FALSE(weights.tensors.at("fc2.weight").identical(state.tensors.at("fc2.weight")));
  const TemporaryFolder folder;
  save(weights, folder / "model.safetensors");
  Trainer plain(tiny_perceptron(), options_on_reference());
  plain.load_weights(folder / "model.safetensors");
  const data::Loader evaluation = tiny_evaluation();
  EXPECT_EQ(results_on(evaluation, plain), results_on(evaluation, trainer));
  // Loaded weights are the start of the averages too.
  trainer.load_weights(folder / "model.safetensors");
  EXPECT_TRUE(trainer.checkpoint().tensors.at("fc1.bias").identical(weights.tensors.at("fc1.bias")));
}

class BadFiles : public ::testing::Test {
 protected:
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  void expect_refused(const Checkpoint& weights, std::initializer_list<std::string> words) {
    save(weights, folder_ / "bad.safetensors");
    expect_file_refused(words, ErrorCode::invalid_file);
  }
  // The trainer keeps the weights that it had.
  void expect_file_refused(std::initializer_list<std::string> words, ErrorCode code) {
    const auto before = trainer_.training_state().tensors;
    EXPECT_TRUE(throws_error([&] { trainer_.load_weights(folder_ / "bad.safetensors"); }, code, words));
    EXPECT_TRUE(
        throws_error([&] { trainer_.load_weights(folder_ / "bad.safetensors"); }, code, {path("bad.")}));
    EXPECT_TRUE(different_tensors(trainer_.training_state().tensors, before).empty());
  }

  TemporaryFolder folder_;
  Trainer trainer_{tiny_resnet(), options_on_reference()};
  Checkpoint good_ = trainer_.checkpoint();
};

TEST_F(BadFiles, OfAnotherShapeNameBothShapes) {
  good_.tensors["fc.weight"] = Tensor(DataType::fp32, {10, 8});
  expect_refused(good_, {"'fc.weight'", "[10, 8]", "[3, 8]"});
}

TEST_F(BadFiles, WithoutATensorNameIt) {
  good_.tensors.erase("layer1.0.bn2.running_mean");
  expect_refused(good_, {"'layer1.0.bn2.running_mean' is missing"});
  good_.tensors.erase("fc.bias");
  good_.tensors["fc.baes"] = Tensor(DataType::fp32, {3});
  good_.tensors["layer1.0.bn2.running_mean"] = Tensor(DataType::fp32, {4});
  expect_refused(good_, {"'fc.bias' is missing", "did you mean 'fc.baes'"});
}

TEST_F(BadFiles, WithATensorTooManyNameIt) {
  good_.tensors["fc9.weight"] = Tensor(DataType::fp32, {4});
  expect_refused(good_, {"'fc9.weight'", "no variable"});
}

TEST_F(BadFiles, OfAnotherNetworkAreRefused) {
  Trainer other(tiny_perceptron(), options_on_reference());
  expect_refused(other.checkpoint(), {"missing"});
}

TEST_F(BadFiles, TruncatedOrMissingAreRefused) {
  save(good_, folder_ / "bad.safetensors");
  const auto size = std::filesystem::file_size(folder_ / "bad.safetensors");
  for (const uintmax_t cut : {size - 1, size / 2, uintmax_t{100}, uintmax_t{5}, uintmax_t{0}}) {
    std::filesystem::resize_file(folder_ / "bad.safetensors", cut);
    expect_file_refused({}, ErrorCode::invalid_file);
  }
  std::filesystem::remove(folder_ / "bad.safetensors");
  expect_file_refused({}, ErrorCode::io);
}

TEST(TrainingState, OfAnotherRunIsRefusedAndChangesNothing) {
  Trainer trainer(tiny_resnet(), options_on_reference());
  const auto refused = [&](const Checkpoint& state, std::initializer_list<std::string> words) {
    const auto before = trainer.training_state();
    EXPECT_TRUE(throws_error([&] { trainer.restore(state, "last"); }, ErrorCode::invalid_file, words))
        << *(words.end() - 1);
    EXPECT_TRUE(different_tensors(trainer.training_state().tensors, before.tensors).empty());
    EXPECT_EQ(trainer.training_state().metadata.at("step"), before.metadata.at("step"));
  };
  refused(trainer.checkpoint(), {"last", "format", "'pt'"});
  Trainer perceptron(tiny_perceptron(), options_on_reference());
  refused(perceptron.training_state(), {"last", "model", "'mlp'", "'resnet_small'"});
  TrainerOptions other = options_on_reference();
  other.optimizer = optim::adam();
  Trainer adam(tiny_resnet(), other);
  refused(adam.training_state(), {"last", "optimizer", "'adam'", "'sgd'"});
  Checkpoint broken = trainer.training_state();
  broken.metadata["step"] = "many";
  refused(broken, {"last", "'step'", "many"});
  broken = trainer.training_state();
  broken.metadata["history"] = "[";
  refused(broken, {"last"});
  broken = trainer.training_state();
  broken.metadata["version"] = "2";
  refused(broken, {"last", "version", "'2'"});
  broken = trainer.training_state();
  broken.tensors.erase("fc.weight/momentum");
  refused(broken, {"last", "'fc.weight/momentum' is missing"});
  broken = trainer.training_state();
  broken.metadata["batch"] = "-3";
  refused(broken, {"last", "batch", "-3"});
}

}  // namespace
}  // namespace tessera::testing
