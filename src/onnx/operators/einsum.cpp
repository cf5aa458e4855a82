// Einsum: operands are multiplied one after the other, each time as one matrix product.
#include <algorithm>
#include <map>
#include <set>

#include "onnx/lowering.h"

namespace tessera::onnx {
namespace {

// Each axis of a value has a label: a letter, or a capital beyond the alphabet for one of an ellipsis.
struct Term {
  std::vector<int> labels;
  Value* value = nullptr;
};

constexpr int kEllipsis = 1000;  // the last axis of an ellipsis, 999 the one before, ...

struct Equation {
  std::vector<std::vector<int>> operands;
  std::vector<int> result;
};

std::vector<int> labels_of(const LowerCall& call, const std::string& text, int64_t rank) {
  const bool has_ellipsis = text.find("...") != std::string::npos;
  const auto letters = static_cast<int64_t>(text.size()) - (has_ellipsis ? 3 : 0);
  const int64_t hidden = rank < 0 ? 0 : rank - letters;
  call.require(hidden >= 0 && (has_ellipsis || hidden == 0),
               "'" + text + "' does not name the axes of its operand");
  std::vector<int> labels;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text.compare(i, 3, "...") == 0) {
      for (int64_t k = hidden; k > 0; --k) labels.push_back(kEllipsis - static_cast<int>(k) + 1);
      i += 2;
    } else {
      const bool is_letter = (text[i] >= 'a' && text[i] <= 'z') || (text[i] >= 'A' && text[i] <= 'Z');
      call.require(is_letter, "'" + text + "' is no part of an equation");
      labels.push_back(text[i]);
    }
  }
  return labels;
}

Equation parse_equation(LowerCall& call) {
  std::string text;
  for (const char c : call.text("equation", "")) {
    if (c != ' ') text += c;
  }
  const size_t arrow = text.find("->");
  std::string left = text.substr(0, arrow);
  Equation equation;
  std::map<int, int> counts;
  std::set<int> hidden;
  for (size_t i = 0; i < call.operand_count(); ++i) {
    const size_t comma = left.find(',');
    call.require((comma == std::string::npos) == (i + 1 == call.operand_count()),
                 "its equation is not for its operands");
    equation.operands.push_back(labels_of(call, left.substr(0, comma), call.type(i).rank()));
    left = comma == std::string::npos ? "" : left.substr(comma + 1);
    for (const int label : equation.operands.back()) ++counts[label];
    for (const int label : equation.operands.back()) {
      if (label > 'z') hidden.insert(label);
    }
  }
  if (arrow == std::string::npos) {
    for (const auto& [label, count] : counts) {
      if (label <= 'z' && count == 1) equation.result.push_back(label);
    }
    equation.result.insert(equation.result.begin(), hidden.begin(), hidden.end());
    return equation;
  }
  const std::string right = text.substr(arrow + 2);
  const bool shows = right.find("...") != std::string::npos;
  const auto letters = static_cast<int64_t>(right.size()) - (shows ? 3 : 0);
  equation.result = labels_of(call, right, letters + (shows ? static_cast<int64_t>(hidden.size()) : 0));
  return equation;
}

// An axis for each label: of one that stands twice the diagonal.
Term without_repeats(Term term) {
  for (size_t i = 0; i < term.labels.size(); ++i) {
    for (size_t j = term.labels.size(); j-- > i + 1;) {
      if (term.labels[i] != term.labels[j]) continue;
      const Shape shape = shape_of(term.value);
      Graph& graph = term.value->graph();
      Value* diagonal = ops::equal(counted(graph, shape, static_cast<int64_t>(i)),
                                   counted(graph, shape, static_cast<int64_t>(j)));
      Value* kept = ops::select(diagonal, term.value, number(graph, term.value->data_type(), 0));
      term.value = ops::reduce_sum(kept, {{static_cast<int64_t>(j)}, false});
      term.labels.erase(term.labels.begin() + static_cast<std::ptrdiff_t>(j));
    }
  }
  return term;
}

// Sums the labels that are not kept, and brings the others into this order.
Value* arranged(const Term& term, const std::vector<int>& order) {
  std::vector<int64_t> permutation;
  for (const int label : order) {
    const auto at = std::find(term.labels.begin(), term.labels.end(), label);
    permutation.push_back(at - term.labels.begin());
  }
  return transpose(term.value, permutation);
}

Term summed(const Term& term, const std::set<int>& kept) {
  std::vector<int64_t> axes;
  Term result;
  for (size_t i = 0; i < term.labels.size(); ++i) {
    if (kept.count(term.labels[i]) == 0) {
      axes.push_back(static_cast<int64_t>(i));
    } else {
      result.labels.push_back(term.labels[i]);
    }
  }
  result.value = axes.empty() ? term.value : ops::reduce_sum(term.value, {axes, false});
  return result;
}

int64_t size_of_labels(const std::vector<int>& labels, const std::map<int, int64_t>& extents) {
  int64_t size = 1;
  for (const int label : labels) size *= extents.at(label);
  return size;
}

Term multiplied(const Term& left, const Term& right, const std::set<int>& kept,
                const std::map<int, int64_t>& extents) {
  std::vector<int> batch;
  std::vector<int> contracted;
  std::vector<int> rows;
  std::vector<int> columns;
  const auto has = [](const Term& term, int label) {
    return std::find(term.labels.begin(), term.labels.end(), label) != term.labels.end();
  };
  for (const int label : left.labels) {
    (!has(right, label) ? rows : kept.count(label) != 0 ? batch : contracted).push_back(label);
  }
  for (const int label : right.labels) {
    if (!has(left, label)) columns.push_back(label);
  }
  const auto joined = [](std::vector<int> first, const std::vector<int>& second,
                         const std::vector<int>& third) {
    first.insert(first.end(), second.begin(), second.end());
    first.insert(first.end(), third.begin(), third.end());
    return first;
  };
  const int64_t b = size_of_labels(batch, extents);
  const int64_t m = size_of_labels(rows, extents);
  const int64_t k = size_of_labels(contracted, extents);
  const int64_t n = size_of_labels(columns, extents);
  Value* x = reshape(arranged(left, joined(batch, rows, contracted)), {b, m, k});
  Value* y = reshape(arranged(right, joined(batch, contracted, columns)), {b, k, n});
  Term result{joined(batch, rows, columns), ops::matmul(x, y)};
  Shape shape;
  for (const int label : result.labels) shape.push_back(extents.at(label));
  result.value = reshape(result.value, shape);
  return result;
}

void lower_einsum(LowerCall& call) {
  const DataType type = call.type(0).data_type;
  const Equation equation = parse_equation(call);
  std::map<int, int64_t> extents;
  std::vector<Term> terms;
  for (size_t i = 0; i < equation.operands.size(); ++i) {
    Value* value = call.operand(i);
    if (!is_floating(type)) value = ops::cast(value, DataType::fp64);
    terms.push_back(without_repeats({equation.operands[i], value}));
    for (size_t axis = 0; axis < terms.back().labels.size(); ++axis) {
      int64_t& extent_of = extents.try_emplace(terms.back().labels[axis], 1).first->second;
      extent_of = std::max(extent_of, extent(terms.back().value, static_cast<int64_t>(axis)));
    }
  }
  for (Term& term : terms) {
    Shape shape;
    for (const int label : term.labels) shape.push_back(extents.at(label));
    term.value = broadcast(term.value, shape);
  }
  const auto kept_after = [&](size_t i) {
    std::set<int> kept(equation.result.begin(), equation.result.end());
    for (size_t j = i; j < terms.size(); ++j) kept.insert(terms[j].labels.begin(), terms[j].labels.end());
    return kept;
  };
  Term product = summed(terms[0], kept_after(1));
  for (size_t i = 1; i < terms.size(); ++i) {
    std::set<int> own = kept_after(i + 1);
    own.insert(product.labels.begin(), product.labels.end());
    const Term next = summed(terms[i], own);
    const std::set<int> kept = kept_after(i + 1);
    product = summed(multiplied(product, next, kept, extents), kept);
  }
  for (const int label : equation.result)
    call.require(std::find(product.labels.begin(), product.labels.end(), label) != product.labels.end(),
                 "its result has an axis that no operand has");
  call.result(0, ops::cast(arranged(product, equation.result), type));
}

const RuleRegistrations kRegistration{{.name = "Einsum", .lower = lower_einsum}};

}  // namespace
}  // namespace tessera::onnx
