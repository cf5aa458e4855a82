#include "onnx/trained_module.h"

#include <algorithm>
#include <set>

namespace tessera::onnx {
namespace {

using program::Block;
using program::Instruction;

bool is_own(const Instruction& instruction, const char* name) {
  return instruction.domain.empty() && instruction.operator_name == name;
}

const Tensor* tensor_of(const Block& block, const std::string& name) {
  const auto constant = block.constants.find(name);
  return constant == block.constants.end() ? nullptr : constant->second.tensor();
}

void copy_shared_initializers(Block& block) {
  std::erase_if(block.instructions, [&](const Instruction& instruction) {
    const bool copies = is_own(instruction, "Identity") && instruction.operands.size() == 1;
    if (!copies || instruction.results.size() != 1) return false;
    const Tensor* shared = tensor_of(block, instruction.operands[0]);
    if (shared == nullptr) return false;
    block.constants.insert_or_assign(instruction.results[0], shared->clone());
    return true;
  });
}

// Which layer an instruction is: of batch normalizations by their variables, so that one that is used twice
// is one.
std::string norm_of(const Instruction& instruction) {
  std::string layer;
  for (size_t i = 1; i < instruction.operands.size(); ++i) layer += instruction.operands[i] + '\n';
  return layer;
}

void separate_statistics(Block& block) {
  constexpr size_t kMean = 3;
  constexpr size_t kVariance = 4;
  std::map<std::string, std::set<std::string>> readers;
  const auto is_batch_norm = [](const Instruction& instruction) {
    return is_own(instruction, "BatchNormalization") && instruction.operands.size() > kVariance &&
           !instruction.results.empty();
  };
  for (size_t i = 0; i < block.instructions.size(); ++i) {
    const Instruction& instruction = block.instructions[i];
    for (size_t operand = 0; operand < instruction.operands.size(); ++operand) {
      const bool is_statistic = is_batch_norm(instruction) && operand >= kMean;
      readers[instruction.operands[operand]].insert(
          is_statistic ? std::to_string(operand) + '\n' + norm_of(instruction) : std::to_string(i));
    }
  }
  std::map<std::string, std::string> own;  // operand and layer -> its statistic
  for (Instruction& instruction : block.instructions) {
    if (!is_batch_norm(instruction)) continue;
    const std::string layer = norm_of(instruction);
    for (const size_t operand : {kMean, kVariance}) {
      std::string& name = instruction.operands[operand];
      const Tensor* shared = tensor_of(block, name);
      if (shared == nullptr || readers.at(name).size() == 1) continue;
      const char* const end = operand == kMean ? ".running_mean" : ".running_var";
      const auto [entry, is_new] =
          own.emplace(std::to_string(operand) + '\n' + layer, instruction.results[0] + end);
      if (is_new) block.constants.insert_or_assign(entry->second, shared->clone());
      name = entry->second;
    }
  }
}

// Over the classes, the second of two axes.
bool makes_probabilities(const Instruction& instruction) {
  if (!is_own(instruction, "Softmax") || instruction.operands.size() != 1) return false;
  const auto axis = instruction.arguments.find("axis");
  if (axis == instruction.arguments.end()) return true;
  const auto* number = std::get_if<int64_t>(&axis->second);
  return number != nullptr && (*number == -1 || *number == 1);
}

void give_logits(Block& block) {
  if (block.outputs.size() != 1) return;
  program::Declaration& output = block.outputs.front();
  const auto last =
      std::find_if(block.instructions.begin(), block.instructions.end(), [&](const Instruction& one) {
        return one.results == std::vector<std::string>{output.name} && makes_probabilities(one);
      });
  if (last == block.instructions.end()) return;
  output.name = last->operands[0];
  block.instructions.erase(last);
}

}  // namespace

std::shared_ptr<const program::Module> ready_for_training(const program::Module& module) {
  Block block = *module.main;
  copy_shared_initializers(block);
  separate_statistics(block);
  give_logits(block);
  prepare(block);
  auto ready = std::make_shared<program::Module>();
  ready->name = module.name;
  ready->metadata = module.metadata;
  ready->main = std::make_shared<const Block>(std::move(block));
  return ready;
}

}  // namespace tessera::onnx
