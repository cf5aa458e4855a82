// What a first user does: read a graph, compile it for the device named first, run it, print the result.
#include <cstdio>

#include <tessera/tessera.h>

namespace ts = tessera;

int main(int count, char** arguments) {
  const auto graph = ts::parse_graph(R"(graph double_it(input %x: fp32[3]) {
  %y: fp32[3] = add(%x, %x)
  output y = %y
})");
  const auto device = ts::Device::open(count > 1 ? arguments[1] : "auto");
  const auto executable = ts::compile(*graph, device);
  executable->bind(std::make_shared<ts::Variables>(device));
  const auto outputs = executable->run({{"x", ts::Tensor::from<float>({3}, {1, 2, 3})}});
  const double last = outputs.at("y").at(2);
  std::printf("%g on %s\n", last, device->description().name.c_str());
  return last == 6 ? 0 : 1;
}
