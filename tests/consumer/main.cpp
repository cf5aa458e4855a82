// What a first user does: read a graph, run it, print the result.
#include <cstdio>
#include <vector>

#include "tessera/base/tensor.h"
#include "tessera/graph/graph.h"
#include "tessera/graph/operator.h"

int main() {
  const auto graph = tessera::parse_graph(R"(graph double_it(input %x: fp32[3]) {
  %y: fp32[3] = add(%x, %x)
  output y = %y
})");
  const std::vector<tessera::Tensor> inputs{tessera::Tensor::from<float>({3}, {1, 2, 3})};
  const tessera::ReferenceResult result = tessera::run_reference(*graph, inputs);
  const double last = result.outputs[0].at(2);
  std::printf("%g\n", last);
  return last == 6 ? 0 : 1;
}
