// How often ranks meet on the host.
#include <gtest/gtest.h>

#include "support/temporary_folder.h"
#include "train/rank_training.h"

namespace tessera::testing {
namespace {

// Counts what ranks agree on beside the step, which exchanges no integers by their maximum.
class CountingCommunicator : public Communicator {
 public:
  explicit CountingCommunicator(std::shared_ptr<Communicator> counted) : counted_(std::move(counted)) {}

  int64_t agreements() const { return agreements_; }

  int64_t rank() const override { return counted_->rank(); }
  int64_t size() const override { return counted_->size(); }
  void all_reduce(std::span<const ReducedPart> parts, DataType type, Reduction reduction) override {
    if (type == DataType::int32 && reduction == Reduction::maximum) ++agreements_;
    counted_->all_reduce(parts, type, reduction);
  }
  void reduce_scatter(const void* input, void* output, int64_t elements, DataType type,
                      Reduction reduction) override {
    counted_->reduce_scatter(input, output, elements, type, reduction);
  }
  void all_gather(const void* input, void* output, int64_t bytes) override {
    counted_->all_gather(input, output, bytes);
  }
  void broadcast(const void* input, void* output, int64_t bytes, int64_t root) override {
    counted_->broadcast(input, output, bytes, root);
  }
  void barrier() override { counted_->barrier(); }
  std::shared_ptr<Communicator> group(std::span<const int64_t> members) override {
    return counted_->group(members);
  }
  void check() override { counted_->check(); }
  void abort(const std::string& reason) noexcept override { counted_->abort(reason); }

 private:
  const std::shared_ptr<Communicator> counted_;
  int64_t agreements_ = 0;
};

// Of a training that saves after its epochs, and by time besides.
int64_t agreements_with(double checkpoint_minutes) {
  const TemporaryFolder folder;
  std::vector<std::shared_ptr<CountingCommunicator>> counters(2);
  train_on(
      2, [] { return tiny_perceptron(); },
      [&](train::TrainerOptions& options, train::FitOptions& fit) {
        auto& counter = counters[static_cast<size_t>(options.communicator->rank())];
        counter = std::make_shared<CountingCommunicator>(options.communicator);
        options.communicator = counter;
        fit.checkpoints = folder.path();
        fit.checkpoint_every = 1;
        fit.checkpoint_minutes = checkpoint_minutes;
      });
  EXPECT_EQ(counters[0]->agreements(), counters[1]->agreements());
  return counters[0]->agreements();
}

TEST(Meetings, AreNoMoreWhereTimeSaysWhenToSave) {
  const int64_t without = agreements_with(0);
  EXPECT_GT(without, 12);  // one at each step
  EXPECT_EQ(agreements_with(1000), without);
}

// The clock of one rank is enough, and all save the same step.
TEST(Meetings, AgreeOnWhatTheClockOfOneSays) {
  const TemporaryFolder folder;
  train_on(
      2, [] { return tiny_perceptron(); },
      [&](train::TrainerOptions& options, train::FitOptions& fit) {
        fit.checkpoints = folder.path();
        fit.checkpoint_every = 0;
        fit.checkpoint_minutes = options.communicator->rank() == 1 ? 1e-9 : 1000;
        fit.keep_checkpoints = 0;
      });
  // 12 steps, of which the last one is last.safetensors.
  for (int64_t step = 1; step < 12; ++step)
    EXPECT_TRUE(std::filesystem::exists(folder / fmt::format("step-{:08}.safetensors", step))) << step;
}

}  // namespace
}  // namespace tessera::testing
