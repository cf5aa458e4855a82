// Fused nodes: small networks at random, through the passes for a device.
#pragma once

#include <vector>

#include "kernel_fuzz/draw.h"
#include "kernel_fuzz/problem.h"
#include "kernel_fuzz/problem_maker.h"

namespace tessera::testing {

// Every fused node into which the passes make a small network, and some of the others.
std::vector<KernelProblem> draw_pattern_problems(Draw& draw, const Device& device);

// The same of the network that the maker holds.
std::vector<KernelProblem> problems_of_network(Draw& draw, ProblemMaker& maker, const Device& device);

// Draws how the problem's node is asked for. In TF32 its inputs become numbers of TF32, whose products are
// exact.
void draw_settings(Draw& draw, KernelProblem& problem);

}  // namespace tessera::testing
