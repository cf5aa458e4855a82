// A checkpoint goes from the device into its file tensor by tensor: the host never holds all of them.
#include <fstream>

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include "tessera/base/file.h"
#include "tessera/train/checkpoint.h"

#include "support/expect_error.h"
#include "support/temporary_folder.h"
#include "train/tiny.h"

namespace tessera::testing {
namespace {

int64_t address_space() {
  std::ifstream file("/proc/self/statm");
  int64_t pages = 0;
  file >> pages;
  return pages * ::sysconf(_SC_PAGESIZE);
}

// Lets this process have so many bytes more than it has now.
class SpaceLimit {
 public:
  explicit SpaceLimit(int64_t bytes) {
    ::getrlimit(RLIMIT_AS, &before_);
    rlimit limit = before_;
    limit.rlim_cur = static_cast<rlim_t>(address_space() + bytes);
    ::setrlimit(RLIMIT_AS, &limit);
  }
  ~SpaceLimit() { ::setrlimit(RLIMIT_AS, &before_); }
  SpaceLimit(const SpaceLimit&) = delete;
  SpaceLimit& operator=(const SpaceLimit&) = delete;

 private:
  rlimit before_{};
};

TEST(Streaming, ASaveHoldsOneTensorAtATime) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the sanitizer itself needs more address space";
#endif
  // Of which the C library gives every one pages of its own, and takes them back at once.
  constexpr int64_t kBytes = int64_t{40} << 20;
  const Shape shape{kBytes / 4};
  Variables variables(Device::reference());
  std::vector<nn::Variable> list;
  for (int i = 0; i < 5; ++i) {
    nn::Variable variable;
    variable.name = "w" + std::to_string(i);
    variable.shape = shape;
    variables.set(variable.name, Tensor(DataType::fp32, shape));
    list.push_back(variable);
  }
  CheckpointSource source;
  for (const nn::Variable& variable : list)
    source.tensors[variable.name] = train::source_of(variables, variable, variable.name);
  const TemporaryFolder folder;
  const auto file = folder / "state.safetensors";
  {
    const SpaceLimit limit(kBytes + kBytes / 2);
    EXPECT_ERROR(read(source), ErrorCode::out_of_memory, "40.0 MiB");
    save(source, file);
  }
  EXPECT_GT(std::filesystem::file_size(file), 5 * kBytes);
}

TEST(Streaming, TheFileIsThatOfTheWholeState) {
  train::Trainer trainer(tiny_resnet(0.1), {.optimizer = optim::sgd({.learning_rate = 0.1, .momentum = 0.9}),
                                            .device = Device::reference()});
  const TemporaryFolder folder;
  save(trainer.training_state(), folder / "whole");
  save(trainer.training_state_source(), folder / "streamed");
  EXPECT_EQ(read_file(folder / "whole"), read_file(folder / "streamed"));
  save(trainer.checkpoint(), folder / "weights");
  save(trainer.checkpoint_source(), folder / "streamed weights");
  EXPECT_EQ(read_file(folder / "weights"), read_file(folder / "streamed weights"));
}

}  // namespace
}  // namespace tessera::testing
