#include <charconv>
#include <unordered_set>

#include "tessera/base/text.h"
#include "tessera/graph/graph.h"
#include "tessera/graph/operator.h"

#include "graph/initial_value.h"
#include "graph/lexer.h"

namespace tessera {
namespace {

constexpr int kMaximumNesting = 16;            // of bodies in bodies
constexpr int64_t kMaximumElements = 1 << 24;  // of one constant, or of all that one number stands for

class Parser {
 public:
  Parser(std::string_view text, const std::string& source_name) : lexer_(text, source_name) {}

  std::unique_ptr<Graph> parse() {
    auto graph = parse_one(0);
    if (lexer_.peek().kind != TokenKind::end) lexer_.wrong("the end");
    return graph;
  }

 private:
  std::unique_ptr<Graph> parse_one(int nesting) {
    if (nesting > kMaximumNesting) lexer_.fail_here("bodies are nested more than {} deep", kMaximumNesting);
    lexer_.expect("graph");
    auto graph = std::make_unique<Graph>(lexer_.expect(TokenKind::word, "the graph's name"));
    lexer_.expect("(");
    if (!lexer_.take_if(")")) {
      do {
        parse_input(*graph);
      } while (lexer_.take_if(","));
      lexer_.expect(")");
    }
    lexer_.expect("{");
    std::unordered_set<std::string> outputs;
    while (!lexer_.take_if("}")) parse_statement(*graph, outputs, nesting);
    return graph;
  }

  void parse_input(Graph& graph) {
    const InputRole role = parse_role();
    const std::string name = lexer_.expect(TokenKind::value, "an input such as %x");
    lexer_.expect(":");
    const TensorType type = parse_type();
    std::optional<Tensor> initial;
    if (lexer_.take_if("=")) initial = parse_initial_value(type);
    located([&] { graph.add_input(role, name, type, std::move(initial)); });
  }

  InputRole parse_role() {
    for (InputRole role : {InputRole::parameter, InputRole::state, InputRole::constant}) {
      if (lexer_.take_if(to_string(role))) return role;
    }
    lexer_.expect("input");
    return InputRole::input;
  }

  // One number for all elements, or a list of them.
  Tensor parse_initial_value(const TensorType& type) {
    if (lexer_.peek().kind == TokenKind::symbol) return parse_elements(type);
    const Shape shape = checked_shape(type);
    spread_elements_ += element_count(shape);
    if (spread_elements_ > kMaximumElements) lexer_.fail_here("the initial values are too large for text");
    Tensor tensor(type.data_type, {1});
    parse_element(tensor, 0);
    return spread(tensor, shape);
  }

  void parse_statement(Graph& graph, std::unordered_set<std::string>& outputs, int nesting) {
    if (lexer_.take_if("output")) {
      const std::string name = lexer_.expect(TokenKind::word, "the output's name");
      if (!outputs.insert(name).second) lexer_.fail_here("the output '{}' is given twice", name);
      lexer_.expect("=");
      graph.add_output(name, parse_value(graph));
    } else if (lexer_.take_if("update")) {
      Value* state = parse_value(graph);
      lexer_.expect("=");
      Value* next = parse_value(graph);
      located([&] { graph.add_update(state, next); });
    } else {
      parse_node(graph, nesting);
    }
  }

  void parse_node(Graph& graph, int nesting) {
    std::vector<std::pair<std::string, std::optional<TensorType>>> outputs;
    do {
      std::string name = lexer_.expect(TokenKind::value, "a value such as %x, 'output', 'update' or '}'");
      std::optional<TensorType> type;
      if (lexer_.take_if(":")) type = parse_type();
      if (graph.find(name) != nullptr) lexer_.fail_here("'%{}' is defined twice", name);
      outputs.emplace_back(std::move(name), std::move(type));
    } while (lexer_.take_if(","));
    lexer_.expect("=");
    const std::string operator_name = lexer_.expect(TokenKind::word, "an operator's name");
    const OperatorSchema* schema = nullptr;
    located([&] { schema = &OperatorRegistry::instance().get(operator_name); });
    lexer_.expect("(");
    std::vector<Value*> inputs;
    if (!lexer_.take_if(")")) {
      do {
        inputs.push_back(lexer_.take_if("_") ? nullptr : parse_value(graph));
      } while (lexer_.take_if(","));
      lexer_.expect(")");
    }
    Attributes attributes;
    if (lexer_.take_if("{")) {
      do {
        parse_attribute(*schema, attributes);
      } while (lexer_.take_if(","));
      lexer_.expect("}");
    }
    std::vector<std::unique_ptr<Graph>> bodies;
    while (lexer_.take_if("body")) bodies.push_back(parse_one(nesting + 1));
    located([&] {
      Node* node = graph.add_node(operator_name, inputs, std::move(attributes), outputs.front().first,
                                  std::move(bodies));
      require(node->outputs().size() == outputs.size(), ErrorCode::invalid_graph,
              "'{}' makes {} values, {} are named", operator_name, node->outputs().size(), outputs.size());
      for (size_t i = 0; i < outputs.size(); ++i) {
        const auto& [name, type] = outputs[i];
        if (name != node->output(i)->name()) graph.rename(node->output(i), name);
        require(!type.has_value() || *type == node->output(i)->type(), ErrorCode::invalid_graph,
                "'%{}' is written as {}, but {} makes {}", name, to_string(type.value_or(TensorType{})),
                operator_name, to_string(node->output(i)->type()));
      }
    });
  }

  Value* parse_value(Graph& graph) {
    const std::string name = lexer_.expect(TokenKind::value, "a value such as %x");
    Value* value = graph.find(name);
    if (value == nullptr) lexer_.fail_here("'%{}' is not defined before this line", name);
    return value;
  }

  TensorType parse_type() {
    TensorType type;
    const std::string name = lexer_.expect(TokenKind::word, "a data type");
    located([&] { type.data_type = parse_data_type(name); });
    type.shape = parse_shape();
    return type;
  }

  SymbolicShape parse_shape() {
    SymbolicShape shape;
    lexer_.expect("[");
    if (lexer_.take_if("]")) return shape;
    do {
      const std::string text = lexer_.take_until(",]");
      located([&] { shape.push_back(parse_dimension(text)); });
      if (shape.back().is_static() && shape.back().value() < 0)
        lexer_.fail_here("'{}' is a negative extent", text);
    } while (lexer_.take_if(","));
    lexer_.expect("]");
    return shape;
  }

  int64_t parse_integer() { return parse_whole<int64_t>(); }

  template <typename Integer>
  Integer parse_whole() {
    const std::string text = lexer_.expect(TokenKind::number, "an integer");
    Integer value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size())
      lexer_.fail_here("'{}' is not an integer", text);
    return value;
  }

  double parse_real() {
    const Token token = lexer_.take();
    if (token.kind != TokenKind::number && token.kind != TokenKind::word)
      lexer_.fail_here("'{}' is no number", token.text);
    const std::optional<double> value = tessera::parse_real(token.text);
    if (!value.has_value()) lexer_.fail_here("'{}' is not a number", token.text);
    return *value;
  }

  Tensor parse_tensor() { return parse_elements(parse_type()); }

  // "(1, 2, 3)"
  Tensor parse_elements(const TensorType& type) {
    const Shape shape = checked_shape(type);
    const int64_t count = element_count(shape);
    if (static_cast<size_t>(count) > lexer_.remaining())
      lexer_.fail_here("the constant has {} elements, more than the text has characters left", count);
    Tensor tensor(type.data_type, shape);
    lexer_.expect("(");
    for (int64_t i = 0; i < count; ++i) {
      if (i > 0) lexer_.expect(",");
      parse_element(tensor, i);
    }
    lexer_.expect(")");
    return tensor;
  }

  Shape checked_shape(const TensorType& type) {
    Shape shape;
    located([&] { shape = type.static_shape(); });
    int64_t count = 1;
    for (int64_t extent : shape) {
      if (extent != 0 && count > kMaximumElements / extent)
        lexer_.fail_here("the constant is too large for text");
      count *= extent;
    }
    return shape;
  }

  void parse_element(Tensor& tensor, int64_t index) {
    if (tensor.data_type() == DataType::int64) {
      tensor.data<int64_t>()[static_cast<size_t>(index)] = parse_integer();
    } else if (tensor.data_type() == DataType::uint64) {
      tensor.data<uint64_t>()[static_cast<size_t>(index)] = parse_whole<uint64_t>();
    } else if (is_complex(tensor.data_type())) {
      Tensor parts = tensor.parts();
      for (int64_t part : {0, 1}) parts.set(2 * index + part, parse_real());
    } else {
      tensor.set(index, parse_real());
    }
  }

  void parse_attribute(const OperatorSchema& schema, Attributes& attributes) {
    const std::string name = lexer_.expect(TokenKind::word, "an attribute's name");
    const AttributeSpecification* specification = schema.find_attribute(name);
    if (specification == nullptr) lexer_.fail_here("operator '{}' has no attribute '{}'", schema.name, name);
    lexer_.expect("=");
    attributes.set(name, parse_attribute_value(specification->kind));
  }

  template <typename ParseOne>
  auto parse_list(ParseOne&& parse_one) {
    std::vector<decltype(parse_one())> values;
    lexer_.expect("[");
    if (lexer_.take_if("]")) return values;
    do {
      values.push_back(parse_one());
    } while (lexer_.take_if(","));
    lexer_.expect("]");
    return values;
  }

  Attribute parse_attribute_value(AttributeKind kind) {
    switch (kind) {
      case AttributeKind::boolean:
        if (lexer_.take_if("true")) return true;
        lexer_.expect("false");
        return false;
      case AttributeKind::integer:
        return parse_integer();
      case AttributeKind::real:
        return parse_real();
      case AttributeKind::text:
        return lexer_.expect(TokenKind::text, "a quoted text");
      case AttributeKind::data_type: {
        DataType type{};
        const std::string text = lexer_.expect(TokenKind::word, "a data type");
        located([&] { type = parse_data_type(text); });
        return type;
      }
      case AttributeKind::integers:
        return parse_list([&] { return parse_integer(); });
      case AttributeKind::reals:
        return parse_list([&] { return parse_real(); });
      case AttributeKind::texts:
        return parse_list([&] { return lexer_.expect(TokenKind::text, "a quoted text"); });
      case AttributeKind::shape:
        return parse_shape();
      case AttributeKind::tensor:
        break;
    }
    return parse_tensor();
  }

  // Puts the line before errors thrown by what the parser calls.
  template <typename Function>
  void located(Function&& function) {
    try {
      function();
    } catch (const Error& error) {
      lexer_.fail_here("{}", error.what());
    }
  }

  Lexer lexer_;
  int64_t spread_elements_ = 0;  // of initial values that are one number in the text
};

}  // namespace

std::unique_ptr<Graph> parse_graph(std::string_view text, const std::string& source_name) {
  auto graph = Parser(text, source_name).parse();
  verify(*graph);
  return graph;
}

}  // namespace tessera
