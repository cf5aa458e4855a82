#include "tessera/program/rule.h"

#include "tessera/base/error.h"

namespace tessera::program {

bool Call::wants(size_t result) const {
  return result < instruction_.results.size() && !instruction_.results[result].empty();
}

template <typename T>
const T* Call::find(const std::string& name) const {
  const auto found = instruction_.arguments.find(name);
  if (found == instruction_.arguments.end()) return nullptr;
  const T* value = std::get_if<T>(&found->second);
  tessera::require(value != nullptr, ErrorCode::invalid_file, "{}: attribute '{}' is of another kind",
                   instruction_.place(), name);
  return value;
}

bool Call::has_argument(const std::string& name) const {
  return instruction_.arguments.count(name) != 0;
}

int64_t Call::integer(const std::string& name) const {
  const int64_t* value = find<int64_t>(name);
  tessera::require(value != nullptr, ErrorCode::invalid_file, "{}: attribute '{}' is missing",
                   instruction_.place(), name);
  return *value;
}

int64_t Call::integer(const std::string& name, int64_t otherwise) const {
  const int64_t* value = find<int64_t>(name);
  return value == nullptr ? otherwise : *value;
}

double Call::real(const std::string& name, double otherwise) const {
  const double* value = find<double>(name);
  return value == nullptr ? otherwise : *value;
}

std::string Call::text(const std::string& name, const std::string& otherwise) const {
  const std::string* value = find<std::string>(name);
  return value == nullptr ? otherwise : *value;
}

std::vector<int64_t> Call::integers(const std::string& name) const {
  const auto* value = find<std::vector<int64_t>>(name);
  return value == nullptr ? std::vector<int64_t>{} : *value;
}

std::vector<double> Call::reals(const std::string& name) const {
  const auto* value = find<std::vector<double>>(name);
  return value == nullptr ? std::vector<double>{} : *value;
}

std::vector<std::string> Call::texts(const std::string& name) const {
  const auto* value = find<std::vector<std::string>>(name);
  return value == nullptr ? std::vector<std::string>{} : *value;
}

Item Call::item(const std::string& name) const {
  const Item* value = find<Item>(name);
  return value == nullptr ? Item{} : *value;
}

const Block& Call::body(const std::string& name) const {
  const auto* value = find<std::shared_ptr<const Block>>(name);
  tessera::require(value != nullptr, ErrorCode::invalid_file, "{}: the body '{}' is missing",
                   instruction_.place(), name);
  return **value;
}

void Call::require(bool condition, const std::string& rule) const {
  tessera::require(condition, ErrorCode::invalid_graph, "{}: {}", instruction_.place(), rule);
}

std::vector<int64_t> LowerCall::known_integers(size_t i) {
  const Tensor tensor = known(i).cast(DataType::int64);
  const auto values = tensor.data<int64_t>();
  return {values.begin(), values.end()};
}

namespace {

[[noreturn]] void fail_kind(const HostCall& call, size_t i, const char* wanted) {
  fail(ErrorCode::invalid_argument, "{}: operand {} is to be {}, it is {}", call.instruction().place(), i,
       wanted, to_string(call.operand(i)));
}

}  // namespace

const Tensor& HostCall::tensor(size_t i) const {
  const Tensor* tensor = operand(i).tensor();
  if (tensor == nullptr) fail_kind(*this, i, "a tensor");
  return *tensor;
}

const TextTensor& HostCall::text_tensor(size_t i) const {
  const TextTensor* text = operand(i).text();
  if (text == nullptr) fail_kind(*this, i, "a tensor of texts");
  return *text;
}

const Item::Sequence& HostCall::sequence(size_t i) const {
  const Item::Sequence* items = operand(i).sequence();
  if (items == nullptr) fail_kind(*this, i, "a sequence");
  return *items;
}

RuleRegistry& RuleRegistry::instance() {
  static RuleRegistry registry;
  return registry;
}

void RuleRegistry::add(Rule rule) {
  std::vector<Rule>& rules = rules_[{rule.domain, rule.name}];
  for (const Rule& other : rules) {
    tessera::require(rule.since > other.until || rule.until < other.since, ErrorCode::internal,
                     "two rules for {} {} share versions", rule.domain, rule.name);
  }
  rules.push_back(std::move(rule));
}

const Rule* RuleRegistry::find(const Instruction& instruction) const {
  const auto found = rules_.find({instruction.domain, instruction.operator_name});
  if (found == rules_.end()) return nullptr;
  for (const Rule& rule : found->second) {
    if (instruction.version >= rule.since && instruction.version <= rule.until) return &rule;
  }
  return nullptr;
}

std::vector<const Rule*> RuleRegistry::all() const {
  std::vector<const Rule*> all;
  for (const auto& [key, rules] : rules_) {
    for (const Rule& rule : rules) all.push_back(&rule);
  }
  return all;
}

}  // namespace tessera::program
