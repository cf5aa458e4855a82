// A network that a file holds: written, read again, and run on numbers of one's own.
#include <cmath>
#include <cstdio>
#include <filesystem>

#include <tessera/onnx.h>
#include <tessera/tessera.h>

namespace ts = tessera;

int main(int count, char** arguments) {
  const auto path = std::filesystem::temp_directory_path() / "own_file.onnx";
  ts::Graph graph("twice");
  ts::Value* x = graph.add_input(ts::InputRole::input, "x", {ts::DataType::fp32, {2, 3}});
  graph.add_output("y", ts::ops::add(x, x));
  ts::onnx::save(graph, {}, path);

  ts::program::Runner runner(ts::onnx::load(path),
                             {.devices = {ts::Device::open(count > 1 ? arguments[1] : "cpu")}});
  const ts::Tensor given = ts::Tensor::from<float>({2, 3}, {1, 2, 3, 4, 5, 6});
  const auto outputs = runner.run({{"x", given}});
  std::filesystem::remove(path);
  for (int64_t i = 0; i < given.size(); ++i) {
    if (outputs.at("y").tensor()->at(i) != 2 * given.at(i)) return std::puts("own_file: another result"), 1;
  }
}
