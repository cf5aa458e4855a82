// Frozen inputs as kernels want them, packed once: kept together by executables over the same variables.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "compile/derived_values.h"
#include "compile/run_variables.h"
#include "compile/step.h"

namespace tessera {

class PackedInputs {
 public:
  // Counts them in the plan. `derived` need not outlive this, the device must.
  PackedInputs(const std::vector<Step>& steps, const DerivedValues& derived, Device& device,
               MemoryPlan& plan);

  // Gives the steps, whose inputs are there, what they want packed: as another executable has it, or anew.
  void give(std::vector<Step>& steps, RunVariables& variables);

 private:
  // One that steps want alike, made by the first of them.
  struct Entry {
    std::string key;  // of equal contents; "" where it cannot be said
    size_t step = 0;
    size_t packing = 0;  // of the step's kernel
    size_t input = 0;
    int64_t bytes = 0;
    std::shared_ptr<void> memory = {};
  };

  size_t entry_for(const Entry& wanted);
  void make(Entry& entry, const Step& step, RunVariables& variables);

  Device& device_;
  std::vector<Entry> entries_;
  std::unordered_map<std::string, size_t> by_key_;
  std::vector<std::vector<size_t>> entries_of_;  // by step and packing
};

}  // namespace tessera
