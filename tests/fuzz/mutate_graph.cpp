// Changes that keep more graphs whole than those of single bytes do: other numbers, operators and values in
// the place of one, one more node, and examples of all operators to begin with.
#include <algorithm>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/graph/graph.h"
#include "tessera/graph/operator.h"

#include "fuzz.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t most);
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t most, unsigned seed);

namespace {

using namespace tessera;

std::string example_text(const OperatorSchema& schema, const OperatorExample& example) {
  Graph graph("g");
  std::vector<Value*> inputs;
  for (const ExampleInput& input : example.inputs) {
    inputs.push_back(graph.add_input(InputRole::input, "x" + std::to_string(inputs.size()),
                                     {input.data_type, to_symbolic(input.shape)}));
  }
  const Node* node = graph.add_node(schema.name, inputs, example.attributes, "y");
  for (const auto& output : node->outputs())
    graph.add_output("r" + std::to_string(graph.outputs().size()), output.get());
  return print(graph);
}

const std::vector<std::string>& examples() {
  static const std::vector<std::string> texts = [] {
    std::vector<std::string> result;
    for (const OperatorSchema* schema : OperatorRegistry::instance().all()) {
      for (const OperatorExample& example : schema->examples) {
        std::string text = example_text(*schema, example);
        if (text.size() < 1024) result.push_back(std::move(text));
      }
    }
    return result;
  }();
  return texts;
}

const std::vector<std::string>& operators() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> result;
    for (const OperatorSchema* schema : OperatorRegistry::instance().all()) result.push_back(schema->name);
    return result;
  }();
  return names;
}

class Mutation {
 public:
  Mutation(std::string text, unsigned seed) : text_(std::move(text)), random_(seed) {}

  std::string run() {
    switch (below(8)) {
      case 0:
        if (text_.size() < 8 || below(8) == 0) text_ = examples()[below(examples().size())];
        break;
      case 1:
      case 2:
      case 3:
        change_number();
        break;
      case 4:
        replace(
            words([](std::string_view word) { return OperatorRegistry::instance().find(word) != nullptr; }),
            operators()[below(operators().size())]);
        break;
      case 5:
        change_value();
        break;
      case 6:
        change_type();
        break;
      default:
        add_node();
        break;
    }
    return text_;
  }

 private:
  struct Place {
    size_t begin;
    size_t length;
  };

  size_t below(size_t count) { return std::uniform_int_distribution<size_t>(0, count - 1)(random_); }

  static bool is_word(char c) {
    return std::strchr("_./-", c) != nullptr ? c != '\0' : std::isalnum(static_cast<unsigned char>(c)) != 0;
  }

  template <typename Predicate>
  std::vector<Place> words(Predicate&& fits) const {
    std::vector<Place> result;
    for (size_t begin = 0; begin < text_.size();) {
      size_t end = begin;
      while (end < text_.size() && is_word(text_[end])) ++end;
      if (end > begin && fits(std::string_view(text_).substr(begin, end - begin)))
        result.push_back({begin, end - begin});
      begin = std::max(end, begin + 1);
    }
    return result;
  }

  std::vector<std::string> values() const {
    std::vector<std::string> result;
    for (size_t at = text_.find('%'); at != std::string::npos; at = text_.find('%', at + 1)) {
      size_t end = at + 1;
      while (end < text_.size() && is_word(text_[end])) ++end;
      result.push_back(text_.substr(at, end - at));
    }
    return result;
  }

  void replace(const std::vector<Place>& places, const std::string& with) {
    if (places.empty()) return;
    const Place place = places[below(places.size())];
    text_.replace(place.begin, place.length, with);
  }

  std::string number(std::string_view old) {
    constexpr int64_t kInteresting[] = {0,
                                        1,
                                        2,
                                        3,
                                        7,
                                        16,
                                        255,
                                        256,
                                        4096,
                                        (int64_t{1} << 31) - 1,
                                        int64_t{1} << 31,
                                        int64_t{1} << 32,
                                        int64_t{1} << 46,
                                        int64_t{1} << 47,
                                        int64_t{1} << 62,
                                        std::numeric_limits<int64_t>::max()};
    const int64_t chosen = kInteresting[below(std::size(kInteresting))];
    switch (below(6)) {
      case 0:
        return std::to_string(-chosen);
      case 1:
        return std::to_string(chosen - 1);
      case 2:
        return "n";
      case 3:
        return "floor(n + " + std::string(old) + ", 2)";
      default:
        return std::to_string(chosen);
    }
  }

  void change_number() {
    const auto places = words([](std::string_view word) {
      return word.find_first_not_of("0123456789-") == std::string_view::npos;
    });
    if (places.empty()) return;
    const Place place = places[below(places.size())];
    text_.replace(place.begin, place.length,
                  number(std::string_view(text_).substr(place.begin, place.length)));
  }

  void change_value() {
    const std::vector<std::string> names = values();
    if (names.empty()) return;
    const std::string from = names[below(names.size())];
    const size_t at = text_.rfind(from);
    text_.replace(at, from.size(), below(8) == 0 ? "_" : names[below(names.size())]);
  }

  void change_type() {
    constexpr const char* kTypes[] = {"fp32",  "fp64", "fp16",  "bf16", "int32",
                                      "int64", "int8", "uint8", "bool"};
    replace(words([&](std::string_view word) {
              return std::find(std::begin(kTypes), std::end(kTypes), word) != std::end(kTypes);
            }),
            kTypes[below(std::size(kTypes))]);
  }

  // Before the first output, which it becomes.
  void add_node() {
    const std::vector<std::string> names = values();
    const size_t place = text_.find("output ");
    if (names.empty() || place == std::string::npos) return;
    const std::string name = "%n" + std::to_string(below(1000));
    std::string line =
        name + " = " + operators()[below(operators().size())] + "(" + names[below(names.size())];
    if (below(2) == 0) line += ", " + names[below(names.size())];
    line += ")\n  ";
    const size_t result = text_.find('%', place);
    if (result != std::string::npos && below(2) == 0) {
      size_t end = result + 1;
      while (end < text_.size() && is_word(text_[end])) ++end;
      text_.replace(result, end - result, name);
    }
    text_.insert(place, line);
  }

  std::string text_;
  std::minstd_rand random_;
};

}  // namespace

size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t most, unsigned seed) {
  if (seed % 4 == 0) return LLVMFuzzerMutate(data, size, most);
  std::string text(reinterpret_cast<const char*>(data), size);
  for (unsigned i = 0; i <= seed / 4 % 3; ++i) text = Mutation(std::move(text), seed + i).run();
  size = std::min(text.size(), most);
  std::memcpy(data, text.data(), size);
  return size;
}
