// Of ai.onnx.ml: ArrayFeatureExtractor, Binarizer, LabelEncoder, TreeEnsemble.
#include <cmath>
#include <map>
#include <set>

#include "onnx/lowering.h"

namespace tessera::onnx {
namespace {

constexpr const char* kDomain = "ai.onnx.ml";

void lower_extractor(LowerCall& call) {
  Value* x = call.operand(0);
  const int64_t rank = x->type().rank();
  Value* indices = reshape(ops::cast(call.operand(1), DataType::int64), {call.type(1).element_count()});
  Value* y = ops::gather(x, indices, rank - 1);
  call.result(0, rank == 1 ? unsqueeze(y, {0}) : y);
}

void lower_binarizer(LowerCall& call) {
  Value* x = call.operand(0);
  call.result(0,
              ops::cast(ops::greater(x, ops::constant_like(x, call.real("threshold", 0))), x->data_type()));
}

// Labels are texts or numbers; NaN is equal to itself here.
struct Label {
  std::string text = {};
  double number = 0;
  bool operator<(const Label& other) const {
    if (text != other.text) return text < other.text;
    if (std::isnan(number) || std::isnan(other.number)) return !std::isnan(number);
    return number < other.number;
  }
};

struct Labels {
  std::vector<Label> values;
  bool are_texts = false;
  DataType type = DataType::fp32;
};

Labels labels_of(const Item& item) {
  Labels labels;
  if (item.text() != nullptr) {
    labels.are_texts = true;
    for (const std::string& text : item.text()->values) labels.values.push_back({text});
  } else if (item.tensor() != nullptr) {
    labels.type = item.tensor()->data_type();
    for (const double number : item.tensor()->to_doubles()) labels.values.push_back({{}, number});
  }
  return labels;
}

// From the attributes PREFIX_strings, PREFIX_int64s, PREFIX_floats or PREFIX_tensor.
Labels labels_of(const HostCall& call, const std::string& prefix) {
  Labels labels;
  if (call.has_argument(prefix + "_tensor")) return labels_of(call.item(prefix + "_tensor"));
  if (call.has_argument(prefix + "_strings")) {
    labels.are_texts = true;
    for (const std::string& text : call.texts(prefix + "_strings")) labels.values.push_back({text});
  } else if (call.has_argument(prefix + "_int64s")) {
    labels.type = DataType::int64;
    for (const int64_t number : call.integers(prefix + "_int64s"))
      labels.values.push_back({{}, static_cast<double>(number)});
  } else {
    for (const double number : call.reals(prefix + "_floats")) labels.values.push_back({{}, number});
  }
  return labels;
}

Label default_label(const HostCall& call, const Labels& values) {
  if (call.has_argument("default_tensor")) {
    const Labels given = labels_of(call.item("default_tensor"));
    call.require(given.values.size() == 1, "default_tensor is to have one element");
    return given.values[0];
  }
  if (values.are_texts) return {call.text("default_string", "_Unused")};
  if (values.type == DataType::int64) return {{}, static_cast<double>(call.integer("default_int64", -1))};
  return {{}, call.real("default_float", -0.0)};
}

void evaluate_label_encoder(HostCall& call) {
  const Labels keys = labels_of(call, "keys");
  const Labels values = labels_of(call, "values");
  call.require(keys.values.size() == values.values.size(), "it is to have as many values as keys");
  std::map<Label, Label> codes;
  for (size_t i = 0; i < keys.values.size(); ++i) codes.emplace(keys.values[i], values.values[i]);
  const Label otherwise = default_label(call, values);
  const Labels x = labels_of(call.operand(0));
  const Shape& shape = x.are_texts ? call.text_tensor(0).shape : call.tensor(0).shape();
  TextTensor texts{shape, {}};
  std::vector<double> numbers;
  for (const Label& label : x.values) {
    const auto found = codes.find(label);
    const Label& code = found == codes.end() ? otherwise : found->second;
    if (values.are_texts) {
      texts.values.push_back(code.text);
    } else {
      numbers.push_back(code.number);
    }
  }
  if (values.are_texts) return call.result(0, std::move(texts));
  call.result(0, Tensor::from_doubles(values.type, shape, numbers));
}

// Nodes of all trees, by number.
struct Trees {
  std::vector<double> splits, modes, leaf_weights;
  std::vector<int64_t> features, true_nodes, false_nodes, true_leaves, false_leaves, missing_is_true, targets,
      roots;
  std::map<size_t, std::set<double>> members;  // of nodes that ask for a set
};

enum class Mode : uint8_t { at_most, less, at_least, greater, equal, not_equal, member };

Trees trees_of(const HostCall& call) {
  const auto numbers = [&](const char* name) {
    const Item item = call.item(name);
    return item.tensor() == nullptr ? std::vector<double>{} : item.tensor()->to_doubles();
  };
  Trees t{numbers("nodes_splits"),
          numbers("nodes_modes"),
          numbers("leaf_weights"),
          call.integers("nodes_featureids"),
          call.integers("nodes_truenodeids"),
          call.integers("nodes_falsenodeids"),
          call.integers("nodes_trueleafs"),
          call.integers("nodes_falseleafs"),
          call.integers("nodes_missing_value_tracks_true"),
          call.integers("leaf_targetids"),
          call.integers("tree_roots"),
          {}};
  const size_t nodes = t.modes.size();
  for (const size_t size : {t.splits.size(), t.features.size(), t.true_nodes.size(), t.false_nodes.size(),
                            t.true_leaves.size(), t.false_leaves.size()})
    call.require(size == nodes, "its lists of nodes differ in length");
  for (const double mode : t.modes)
    call.require(mode >= 0 && mode <= static_cast<double>(Mode::member),
                 "a node of its trees has an unknown mode");
  call.require(t.missing_is_true.empty() || t.missing_is_true.size() == nodes,
               "its lists of nodes differ in length");
  call.require(t.targets.size() == t.leaf_weights.size(), "its lists of leaves differ in length");
  // The members of all nodes that ask for a set, each set closed by a NaN.
  const std::vector<double> values = numbers("membership_values");
  size_t next = 0;
  for (size_t node = 0; node < nodes; ++node) {
    if (static_cast<Mode>(t.modes[node]) != Mode::member) continue;
    std::set<double>& members = t.members[node];
    while (next < values.size() && !std::isnan(values[next])) members.insert(values[next++]);
    ++next;
  }
  return t;
}

bool holds(const Trees& t, size_t node, double x) {
  if (std::isnan(x) && !t.missing_is_true.empty() && t.missing_is_true[node] != 0) return true;
  const double split = t.splits[node];
  switch (static_cast<Mode>(t.modes[node])) {
    case Mode::at_most:
      return x <= split;
    case Mode::less:
      return x < split;
    case Mode::at_least:
      return x >= split;
    case Mode::greater:
      return x > split;
    case Mode::equal:
      return x == split;
    case Mode::not_equal:
      return x != split;
    default:
      return t.members.at(node).count(x) != 0;
  }
}

// The leaf that a row comes to; a node that is its own leaf counts through `is_leaf`.
size_t leaf_of(const HostCall& call, const Trees& t, size_t node, const Tensor& x, int64_t row) {
  const int64_t width = x.shape().back();
  for (size_t steps = 0; steps <= t.modes.size(); ++steps) {
    call.require(node < t.modes.size() && t.features[node] >= 0 && t.features[node] < width,
                 "a node of its trees is not there");
    const bool is_true = holds(t, node, x.at(row * width + t.features[node]));
    const int64_t next = is_true ? t.true_nodes[node] : t.false_nodes[node];
    const bool is_leaf = (is_true ? t.true_leaves[node] : t.false_leaves[node]) != 0;
    call.require(next >= 0, "a node of its trees is not there");
    if (is_leaf) {
      call.require(next < std::ssize(t.leaf_weights), "a leaf of its trees is not there");
      return static_cast<size_t>(next);
    }
    node = static_cast<size_t>(next);
  }
  call.require(false, "its trees go round in circles");
  return 0;
}

void evaluate_tree_ensemble(HostCall& call) {
  const Tensor& x = call.tensor(0);
  call.require(x.shape().size() == 2, "it takes rows [N, F]");
  const Trees trees = trees_of(call);
  const int64_t targets = call.integer("n_targets", 1);
  const int64_t aggregate = call.integer("aggregate_function", 1);  // average, sum, least, most
  call.require(targets > 0 && targets < (int64_t{1} << 24) && aggregate >= 0 && aggregate <= 3,
               "its targets or its aggregate_function are unknown");
  tessera::require(call.integer("post_transform", 0) == 0, ErrorCode::unsupported,
                   "{}: a post_transform is not supported", call.instruction().place());
  const int64_t rows = x.shape()[0];
  Tensor y(x.data_type(), {rows, targets});
  for (int64_t row = 0; row < rows; ++row) {
    std::map<int64_t, double> sums;
    for (const int64_t root : trees.roots) {
      const size_t leaf = leaf_of(call, trees, static_cast<size_t>(root), x, row);
      const int64_t target = trees.targets[leaf];
      call.require(target >= 0 && target < targets, "a leaf of its trees is for a target that is not there");
      const double weight = trees.leaf_weights[leaf];
      const auto [sum, is_new] = sums.try_emplace(target, weight);
      if (is_new) continue;
      sum->second = aggregate == 2   ? std::min(sum->second, weight)
                    : aggregate == 3 ? std::max(sum->second, weight)
                                     : sum->second + weight;
    }
    for (const auto& [target, sum] : sums)
      y.set(row * targets + target, aggregate == 0 ? sum / static_cast<double>(trees.roots.size()) : sum);
  }
  call.result(0, y);
}

const RuleRegistrations kRegistration{
    {.name = "ArrayFeatureExtractor", .domain = kDomain, .lower = lower_extractor},
    {.name = "Binarizer", .domain = kDomain, .lower = lower_binarizer},
    {.name = "LabelEncoder", .domain = kDomain, .evaluate = evaluate_label_encoder},
    {.name = "TreeEnsemble", .domain = kDomain, .evaluate = evaluate_tree_ensemble},
};

}  // namespace
}  // namespace tessera::onnx
