// A module in a graph that somebody else owns.
#include <set>

#include "tessera/base/error.h"
#include "tessera/ops/functions.h"
#include "tessera/program/runner.h"

#include "program/generalize.h"
#include "program/island.h"

namespace tessera::program {
namespace {

using NamedValues = std::map<std::string, Value*>;

// At the types of the inputs, all of which are static.
NamedValues build_static(const Module& module, const NamedValues& inputs, GraphOwner& owner) {
  const Block& main = *module.main;
  Frame frame(main);
  for (const Declaration& input : main.inputs) {
    if (const auto given = inputs.find(input.name); given != inputs.end()) {
      frame.set(input.name, {.type_only = given->second->type(), .value = given->second});
    } else {
      require(main.constants.contains(input.name), ErrorCode::invalid_argument,
              "the input '{}' ({}) is missing", input.name, input.type);
    }
  }
  WeightNames names;
  const Island island = build_island(frame, 0, names, WeightRole::parameter, &owner);
  require(!island.on_host && island.end == main.instructions.size(), ErrorCode::unsupported,
          "'{}' is no single graph: {}", module.name, island.why);
  NamedValues outputs;
  for (const Export& exported : island.exports) {
    const Tensor* known = exported.item.tensor();
    Value* value = known != nullptr ? ops::constant(owner.graph(), *known) : exported.value;
    require(value != nullptr, ErrorCode::unsupported, "the output '{}' is no tensor", exported.name);
    outputs[exported.name] = value;
  }
  for (const Declaration& output : main.outputs) {
    if (outputs.contains(output.name)) continue;
    const auto given = inputs.find(output.name);
    require(given != inputs.end(), ErrorCode::unsupported, "no node makes the output '{}'", output.name);
    outputs[output.name] = given->second;
  }
  return outputs;
}

// Keeps what is asked for, for inference at one size.
class Draft : public GraphOwner {
 public:
  struct Wanted {
    std::string name;
    Tensor contents;
    bool is_statistic = false;
  };

  Graph& graph() override { return graph_; }
  bool trains() const override { return false; }
  Value* variable(const std::string& name, const Tensor& contents, bool is_statistic) override {
    if (Value* known = graph_.find_input(name)) return known;
    wanted_.push_back({name, contents, is_statistic});
    return graph_.add_input(InputRole::parameter, name,
                            {contents.data_type(), to_symbolic(contents.shape())});
  }
  Value* batch_norm(const std::string& name, Value*, const BatchNorm&) override { not_asked(name); }
  Value* dropout(Value* x, double) override { not_asked(x->name()); }

  NamedValues build(const Module& module, const NamedValues& inputs, const SymbolBindings& size) {
    NamedValues own;
    for (const auto& [name, value] : inputs) {
      own[name] = graph_.add_input(InputRole::input, "input/" + value->name(),
                                   {value->data_type(), substitute(value->shape(), size)});
    }
    return build_static(module, own, *this);
  }
  const std::vector<Wanted>& wanted() const { return wanted_; }

 private:
  [[noreturn]] static void not_asked(const std::string& name) {
    fail(ErrorCode::internal, "'{}' is asked for what training does, by who does not train", name);
  }

  Graph graph_{"draft"};
  std::vector<Wanted> wanted_;
};

NamedValues build_symbolic(const Module& module, const NamedValues& inputs, const std::string& symbol,
                           GraphOwner& owner) {
  require(!owner.trains(), ErrorCode::unsupported, "'{}' is trained at sizes that are numbers", module.name);
  // Primes that are hardly an extent of anything else.
  const OpenExtent open{Dimension::symbol(symbol), 61, 67};
  Draft first;
  Draft second;
  const NamedValues outputs = first.build(module, inputs, {{symbol, open.first}});
  second.build(module, inputs, {{symbol, open.second}});
  ValueMapping mapping;
  for (const auto& [name, value] : inputs)
    mapping[first.graph().find_input("input/" + value->name())] = value;
  for (const Draft::Wanted& wanted : first.wanted()) {
    mapping[first.graph().find_input(wanted.name)] =
        owner.variable(wanted.name, wanted.contents, wanted.is_statistic);
  }
  copy_generalized(first.graph(), second.graph(), open, owner.graph(), mapping);
  NamedValues generalized;
  for (const auto& [name, value] : outputs) generalized[name] = mapping.at(value);
  return generalized;
}

}  // namespace

std::map<std::string, Value*> Runner::build(const std::map<std::string, Value*>& inputs,
                                            GraphOwner& owner) const {
  std::set<std::string> symbols;
  for (const auto& [name, value] : inputs) {
    for (const Dimension& extent : value->shape()) extent.collect_symbols(symbols);
  }
  if (symbols.empty()) return build_static(module(), inputs, owner);
  require(symbols.size() == 1, ErrorCode::unsupported, "'{}': at most one extent of the inputs may be open",
          module().name);
  return build_symbolic(module(), inputs, *symbols.begin(), owner);
}

}  // namespace tessera::program
