// One island: as many instructions as one static graph can hold.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tessera/compile/executable.h"
#include "tessera/program/rule.h"
#include "tessera/program/runner.h"

#include "program/frame.h"
#include "program/island_run.h"

namespace tessera::program {

// What a plan asks of a value that it reads.
struct Signature {
  enum class Kind : uint8_t { absent, tensor, other, constant };
  Kind kind = Kind::absent;
  TensorType type = {};
  bool operator==(const Signature&) const = default;
};
Signature signature_of(const Frame::Found& found);

// Where a value that outlives the island comes from.
struct Export {
  std::string name;
  std::string output = {};  // of the graph; "" where `item` or `alias` says it
  std::string alias = {};   // the name of a value that was there before
  Item item = {};
  Value* value = nullptr;  // of the owner's graph, where there is an owner
};

struct Island {
  size_t end = 0;                             // the first instruction that is not part of it
  bool on_host = false;                       // one instruction, to be evaluated
  std::map<std::string, Signature> reads;     // of the frame
  std::map<std::string, Tensor> assumptions;  // contents that rules asked for
  std::unique_ptr<Graph> graph;
  std::map<std::string, std::string> feeds;  // inputs of the graph by the names of values
  std::map<std::string, Tensor> weights;     // its constants or parameters
  std::vector<Export> exports;
  std::string why;                 // it ended
  std::unique_ptr<IslandRun> run;  // null where it does nothing but fold
  int64_t runs = 0;
  size_t number = 0;  // in the order of planning
};

// Names of constants in graphs, each the same in all islands.
class WeightNames {
 public:
  const std::string& name_of(const Tensor& tensor, const std::string& wanted);

 private:
  std::map<const void*, std::string> names_;
  std::map<std::string, int> taken_;
};

enum class WeightRole : uint8_t {
  constant,   // large constants are variables, small ones nodes
  parameter,  // floating constants are parameters
};

// The island that begins at that instruction of the frame's block. With an owner it is built into that one's
// graph, and is no graph of its own.
Island build_island(const Frame& frame, size_t begin, WeightNames& names, WeightRole role,
                    GraphOwner* owner = nullptr);

// What verify() allows in names; another character becomes '_'.
std::string legal_name(const std::string& name);

}  // namespace tessera::program
