// A foreign network as it was written: instructions of named operators, not yet nodes of a graph.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

#include "tessera/graph/tensor_type.h"
#include "tessera/program/item.h"

namespace tessera::program {

struct Block;

// Of an attribute, in the order of the variant.
using Argument = std::variant<int64_t, double, std::string, std::vector<int64_t>, std::vector<double>,
                              std::vector<std::string>, Item, std::shared_ptr<const Block>>;

struct Instruction {
  std::string name;  // for messages; may be empty
  std::string domain;
  std::string operator_name;
  int64_t version = 0;                // of the domain's operator set
  std::vector<std::string> operands;  // names of values; "" where one is left out
  std::vector<std::string> results;   // "" where one is not wanted
  std::map<std::string, Argument> arguments = {};

  // "node 'conv1' (Conv)"
  std::string place() const;
};

// What is said of a value that enters or leaves a block.
struct Declaration {
  std::string name;
  std::string type;                  // for people: "fp32[batch, 3]", "sequence of fp32[2]"
  std::optional<TensorType> tensor;  // when it is a tensor of known rank
};

// Instructions in an order in which they can run; each name is given once. What a block neither holds nor
// makes it reads from the blocks around it.
struct Block {
  std::string name;
  std::vector<Declaration> inputs;
  std::vector<Declaration> outputs;
  std::map<std::string, Item> constants;
  std::vector<Instruction> instructions;
  // The last instruction that reads each name, its bodies included; SIZE_MAX for an output. Set by prepare().
  std::unordered_map<std::string, size_t> last_read = {};
};

// Fills in last_read. Call it for bodies too, with the block around them. Of a main block, which has none
// around it, it checks that every name is given before it is read, also in bodies: throws Error(invalid_file)
// naming the first that is not.
void prepare(Block& block, const Block* outer = nullptr);

struct Module {
  std::string name;
  std::map<std::string, std::string> metadata =
      {};  // what its maker says beside it, such as names of classes
  std::shared_ptr<const Block> main;
};

// Operators of the module that no rule knows, with how often each occurs: "Foo (opset 13): 2 times".
std::vector<std::string> unsupported_operators(const Module& module);

}  // namespace tessera::program
