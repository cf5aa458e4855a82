// What is said of a GPU whose context is lost: in a process of its own, which loses it.
#include <cstdio>
#include <cstdlib>

#include "device_cuda/cuda_case.h"

namespace tessera::testing {
namespace {

template <typename Use>
void report(const char* what, const Use& use) {
  try {
    use();
    std::fprintf(stderr, "%s: no error\n", what);
  } catch (const Error& error) {
    std::fprintf(stderr, "%s: %s: %s\n", what, error.code() == ErrorCode::device_fault ? "fault" : "else",
                 error.what());
  }
}

// A kernel writes where there is no memory. Ends with 0 when all that held memory and streams is gone as
// well.
[[noreturn]] void lose_the_context() {
  {
    const std::shared_ptr<Device> device = Device::open("cuda");
    const std::unique_ptr<Graph> graph =
        parse_graph("graph g(input %x: fp32[4096]) {\n  %y = relu(%x)\n  output y = %y\n}\n");
    const Node& node = *graph->nodes().front();
    const KernelRequest request{.node = node, .frozen_inputs = {false}};
    const std::unique_ptr<Kernel> kernel = device->candidates(node).front().create(request);
    const std::shared_ptr<void> x = device->allocate(node.input(0)->type().bytes());
    const std::vector<const void*> inputs{x.get()};
    const std::vector<void*> outputs{reinterpret_cast<void*>(uintptr_t{1} << 12)};
    const std::shared_ptr<Queue> queue = device->queue();
    report("kernel", [&] {
      kernel->run({inputs, outputs, nullptr, *queue});
      queue->synchronize();
    });
    float number = 0;
    report("copy", [&] { device->copy_to_host(&number, x.get(), sizeof(number)); });
    report("memory", [&] { device->allocate(int64_t{1} << 30); });
  }
  std::exit(0);
}

TEST(LostDevice, CudaSaysSoAtEveryUseAndEndsInOrder) {
  TESSERA_NEEDS_GPU();
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      lose_the_context(), ::testing::ExitedWithCode(0),
      "kernel: fault: .*context is lost.*\ncopy: fault: .*context is lost.*\nmemory: fault: .*context is "
      "lost");
}

}  // namespace
}  // namespace tessera::testing
