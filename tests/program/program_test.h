// Small modules, with operators of the domain "test" that rules.cpp registers.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tessera/program/runner.h"

namespace tessera::program {

Instruction instruction(const std::string& name, std::vector<std::string> operands,
                        std::vector<std::string> results);
Declaration declare(const std::string& name, TensorType type);
// Prepares the block.
std::shared_ptr<const Module> module_of(Block block);

// On the reference device.
RunnerOptions reference_options();

Tensor numbers(const std::vector<float>& values);
// Of an output that is a tensor.
std::vector<double> values_of(const std::map<std::string, Item>& outputs, const std::string& name);

}  // namespace tessera::program
