// Prints the step of an optimizer over so many parameters, about 50 nodes for each, as a graph's text: what
// bench/scaling compiles.
#include <cstdio>
#include <cstdlib>

#include "support/optimizer_graph.h"

int main(int count, char** words) {
  const int parameters = count == 2 ? std::atoi(words[1]) : 0;
  if (parameters < 1) {
    std::fputs("usage: large_graph PARAMETERS\n", stderr);
    return 2;
  }
  std::fputs(tessera::print(*tessera::testing::optimizer_graph(parameters)).c_str(), stdout);
}
