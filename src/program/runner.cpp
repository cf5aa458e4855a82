#include "tessera/program/runner.h"

#include <algorithm>
#include <list>

#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/compile/reference_kernel.h"
#include "tessera/ops/functions.h"

#include "program/island.h"

namespace tessera::program {
namespace {

constexpr int kDeepestBody = 64;

bool fits(const Island& island, const Frame& frame) {
  for (const auto& [name, signature] : island.reads) {
    if (signature_of(frame.find(name)) != signature) return false;
  }
  for (const auto& [name, contents] : island.assumptions) {
    const Tensor* given = frame.find(name).item->tensor();
    if (given == nullptr || !given->identical(contents)) return false;
  }
  return true;
}

std::string join(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += (text.empty() ? "" : ", ") + line;
  return text;
}

bool fits(const TensorType& declared, const Tensor& tensor) {
  if (declared.data_type != tensor.data_type() || declared.shape.size() != tensor.shape().size())
    return false;
  for (size_t i = 0; i < declared.shape.size(); ++i) {
    if (declared.shape[i].is_static() && declared.shape[i].value() != tensor.shape()[i]) return false;
  }
  return true;
}

}  // namespace

struct Runner::Implementation {
  // One device with what islands share on it.
  struct Place {
    std::shared_ptr<Device> device;
    std::shared_ptr<Variables> variables;
    std::shared_ptr<Workspace> workspace;
  };

  std::shared_ptr<const Module> module;
  RunnerOptions options;
  std::vector<Place> places;
  WeightNames names;
  std::map<std::pair<const Block*, size_t>, std::list<Island>> islands;  // the one used last in front
  int depth = 0;
  uint64_t run_number = 0;
  size_t planned = 0;  // islands so far

  std::vector<Item> run(const Block& block, std::vector<Item> inputs, const Frame* outer);
  void run(Frame& frame);
  Island& island_at(const Frame& frame, size_t begin);
  void compile_island(Island& island);
  void run_graph(Island& island, Frame& frame);
  void run_on_host(const Instruction& instruction, Frame& frame);
};

namespace {

class FrameCall : public HostCall {
 public:
  using Run = std::function<std::vector<Item>(const Block&, std::vector<Item>)>;
  FrameCall(const Instruction& instruction, Frame& frame, int64_t most_iterations, Run run)
      : HostCall(instruction), frame_(frame), most_iterations_(most_iterations), run_(std::move(run)) {}

  const Item& operand(size_t i) const override {
    static const Item kAbsent;
    const auto& operands = instruction().operands;
    return i >= operands.size() || operands[i].empty() ? kAbsent : *frame_.find(operands[i]).item;
  }
  void result(size_t i, Item item) override {
    if (wants(i)) results_[instruction().results[i]] = std::move(item);
  }
  std::vector<Item> run(const Block& body, std::vector<Item> inputs) override {
    return run_(body, std::move(inputs));
  }
  int64_t most_iterations() const override { return most_iterations_; }

  // An operand may have the name of a result in no legal module, but results come last all the same.
  void keep_results() {
    for (const std::string& name : instruction().results) {
      if (name.empty()) continue;
      const auto found = results_.find(name);
      tessera::require(found != results_.end(), ErrorCode::unsupported,
                       "{}: its result '{}' is not supported", instruction().place(), name);
      frame_.set(name, {std::move(found->second)});
    }
  }

 private:
  Frame& frame_;
  int64_t most_iterations_;
  Run run_;
  std::map<std::string, Item> results_;
};

}  // namespace

void Runner::Implementation::compile_island(Island& island) {
  if (island.graph->nodes().empty()) return;
  for (size_t i = 0; i < places.size(); ++i) {
    Place& place = places[i];
    std::unique_ptr<Executable> executable;
    try {
      CompileOptions compile_options = options.compile;
      compile_options.workspace = place.workspace;
      executable = compile(*island.graph, place.device, compile_options);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::unsupported || i + 1 == places.size()) throw;
      continue;
    }
    for (const auto& [name, tensor] : island.weights) {
      if (!place.variables->contains(name)) place.variables->set(name, tensor);
    }
    executable->bind(place.variables);
    island.run = std::make_unique<IslandRun>(std::move(executable), place.device);
    return;
  }
}

Island& Runner::Implementation::island_at(const Frame& frame, size_t begin) {
  std::list<Island>& variants = islands[{&frame.block(), begin}];
  const auto found = std::find_if(variants.begin(), variants.end(),
                                  [&](const Island& island) { return fits(island, frame); });
  if (found != variants.end()) {
    variants.splice(variants.begin(), variants, found);
    return variants.front();
  }
  Island island = build_island(frame, begin, names, WeightRole::constant);
  if (!island.on_host) compile_island(island);
  island.number = planned++;
  variants.push_front(std::move(island));
  if (variants.size() > std::max<size_t>(options.most_variants, 1)) variants.pop_back();
  return variants.front();
}

void Runner::Implementation::run_graph(Island& island, Frame& frame) {
  std::map<std::string, Item> outputs;
  if (island.run != nullptr) {
    std::map<std::string, const Item*> inputs;
    for (const auto& [input, name] : island.feeds) {
      // The passes may have dropped an input whose contents do not matter.
      if (island.run->executable().graph().find_input(input) == nullptr) continue;
      inputs.emplace(input, frame.find(name).item);
    }
    outputs = island.run->run(inputs, run_number);
  }
  for (const Export& exported : island.exports) {
    if (!exported.output.empty()) {
      frame.set(exported.name, {outputs.at(exported.output)});
    } else if (!exported.alias.empty()) {
      frame.set(exported.name, {*frame.find(exported.alias).item});
    } else {
      frame.set(exported.name, {.item = exported.item, .settled = true});
    }
  }
}

void Runner::Implementation::run_on_host(const Instruction& instruction, Frame& frame) {
  const Rule* rule = RuleRegistry::instance().find(instruction);
  FrameCall call(
      instruction, frame, options.most_iterations,
      [&](const Block& body, std::vector<Item> inputs) { return run(body, std::move(inputs), &frame); });
  try {
    rule->evaluate(call);
  } catch (const Error& error) {
    const std::string message = error.what();
    if (message.find(instruction.place()) != std::string::npos) throw;
    throw Error(error.code(), fmt::format("{}: {}", instruction.place(), message));
  }
  call.keep_results();
}

void Runner::Implementation::run(Frame& frame) {
  const Block& block = frame.block();
  for (size_t next = 0; next < block.instructions.size();) {
    Island& island = island_at(frame, next);
    const size_t end = island.end;
    ++island.runs;
    if (island.on_host) {
      run_on_host(block.instructions[next], frame);
    } else {
      run_graph(island, frame);
    }
    // What nothing reads any more goes.
    for (; next < end; ++next) {
      for (const std::string& name : block.instructions[next].operands) {
        const auto read = block.last_read.find(name);
        if (read != block.last_read.end() && read->second < end) frame.erase(name);
      }
    }
  }
}

std::vector<Item> Runner::Implementation::run(const Block& block, std::vector<Item> inputs,
                                              const Frame* outer) {
  require(inputs.size() == block.inputs.size(), ErrorCode::invalid_file,
          "body '{}' takes {} values, it is given {}", block.name, block.inputs.size(), inputs.size());
  require(depth < kDeepestBody, ErrorCode::invalid_file, "bodies within bodies, more than {} deep",
          kDeepestBody);
  ++depth;
  struct Leave {
    int& depth;
    ~Leave() { --depth; }
  } leave{depth};
  Frame frame(block, outer);
  for (size_t i = 0; i < inputs.size(); ++i) frame.set(block.inputs[i].name, {std::move(inputs[i])});
  run(frame);
  std::vector<Item> outputs;
  for (const Declaration& output : block.outputs) outputs.push_back(*frame.find(output.name).item);
  return outputs;
}

Runner::Runner(std::shared_ptr<const Module> module, RunnerOptions options)
    : implementation_(std::make_unique<Implementation>()) {
  const std::vector<std::string> unsupported = unsupported_operators(*module);
  require(unsupported.empty(), ErrorCode::unsupported, "'{}' has operators that are not supported: {}",
          module->name, join(unsupported));
  if (options.devices.empty()) options.devices = {Device::open("cpu")};
  for (const auto& device : options.devices) {
    implementation_->places.push_back(
        {device, std::make_shared<Variables>(device), std::make_shared<Workspace>(device)});
  }
  implementation_->module = std::move(module);
  implementation_->options = std::move(options);
}

Runner::~Runner() = default;
Runner::Runner(Runner&&) noexcept = default;
Runner& Runner::operator=(Runner&&) noexcept = default;

const Module& Runner::module() const {
  return *implementation_->module;
}

std::map<std::string, Item> Runner::run(const std::map<std::string, Item>& inputs) {
  const Block& main = *module().main;
  std::vector<std::string> names;
  for (const Declaration& input : main.inputs) names.push_back(input.name);
  for (const auto& [name, item] : inputs) {
    if (std::find(names.begin(), names.end(), name) != names.end()) continue;
    fail(ErrorCode::invalid_argument, "there is no input '{}'{}", name, did_you_mean(name, names));
  }
  Frame frame(main);
  for (const Declaration& input : main.inputs) {
    const auto given = inputs.find(input.name);
    if (given == inputs.end()) {
      require(main.constants.count(input.name) != 0, ErrorCode::invalid_argument,
              "the input '{}' ({}) is missing", input.name, input.type);
      continue;
    }
    const Tensor* tensor = given->second.tensor();
    if (input.tensor) {
      require(tensor != nullptr && fits(*input.tensor, *tensor), ErrorCode::invalid_argument,
              "the input '{}' is to be {}, it is {}", input.name, input.type, to_string(given->second));
    }
    frame.set(input.name, {given->second});
  }
  ++implementation_->run_number;
  implementation_->run(frame);
  std::map<std::string, Item> outputs;
  for (const Declaration& output : main.outputs)
    outputs[output.name] = on_host(*frame.find(output.name).item);
  return outputs;
}

Instance Runner::instantiate(const std::map<std::string, TensorType>& inputs,
                             const std::map<std::string, Tensor>& known) const {
  const Block& main = *module().main;
  Frame frame(main);
  for (const Declaration& input : main.inputs) {
    if (const auto contents = known.find(input.name); contents != known.end()) {
      frame.set(input.name, {.item = contents->second, .settled = true});
    } else if (const auto type = inputs.find(input.name); type != inputs.end()) {
      frame.set(input.name, {.type_only = type->second});
    } else {
      require(main.constants.count(input.name) != 0, ErrorCode::invalid_argument,
              "the type of the input '{}' ({}) is missing", input.name, input.type);
    }
  }
  WeightNames names;
  Island island = build_island(frame, 0, names, WeightRole::parameter);
  require(!island.on_host && island.end == main.instructions.size(), ErrorCode::unsupported,
          "'{}' is no single graph: {}", module().name, island.why);
  for (const Export& exported : island.exports) {
    if (!exported.output.empty()) continue;
    Value* value = nullptr;
    if (!exported.alias.empty()) value = island.graph->find_input(legal_name(exported.alias));
    if (exported.item.tensor() != nullptr) value = ops::constant(*island.graph, *exported.item.tensor());
    require(value != nullptr, ErrorCode::unsupported, "the output '{}' is no tensor", exported.name);
    island.graph->add_output(legal_name(exported.name), value);
  }
  return {std::move(island.graph), std::move(island.weights)};
}

namespace {

std::vector<std::string> host_operators_of(const Executable& executable) {
  std::vector<std::string> names;
  for (const NodeReport& node : executable.nodes()) {
    if (node.kernel == kHostReferenceKernel) names.push_back(node.operator_name);
  }
  return names;
}

}  // namespace

std::vector<IslandReport> Runner::islands() const {
  std::vector<std::pair<size_t, IslandReport>> numbered;
  for (const auto& [place, variants] : implementation_->islands) {
    for (const Island& island : variants) {
      const IslandRun* run = island.run.get();
      IslandReport report{.block = place.first->name,
                          .first = place.second,
                          .end = island.end,
                          .nodes = run == nullptr ? 0 : run->executable().graph().nodes().size(),
                          .device = island.on_host   ? "host"
                                    : run == nullptr ? ""
                                                     : run->device().description().name,
                          .host_operators = run == nullptr ? std::vector<std::string>{}
                                                           : host_operators_of(run->executable()),
                          .why = island.why,
                          .runs = island.runs,
                          .graph = run == nullptr ? nullptr : island.graph.get()};
      numbered.emplace_back(island.number, std::move(report));
    }
  }
  std::sort(numbered.begin(), numbered.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<IslandReport> reports;
  for (auto& [number, report] : numbered) reports.push_back(std::move(report));
  return reports;
}

}  // namespace tessera::program
