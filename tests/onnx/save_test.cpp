// What is written is read back and gives what the graph gives.
#include "tessera/onnx/save.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tessera/base/file.h"
#include "tessera/models/registry.h"
#include "tessera/onnx/onnx.h"
#include "tessera/passes/decompose.h"
#include "tessera/program/runner.h"
#include "tessera/tasks/click_through.h"
#include "tessera/tasks/gan.h"
#include "tessera/tasks/image_classification.h"
#include "tessera/tasks/masked_language_model.h"
#include "tessera/train/checkpoint.h"
#include "tessera/train/step.h"

#include "support/compare.h"
#include "support/expect_failure.h"
#include "support/operator_tolerance.h"
#include "support/random_tensor.h"
#include "support/temporary_folder.h"

namespace tessera::onnx {
namespace {

using testing::expect_close;
using testing::expect_error;
using testing::random_tensor;
using testing::TemporaryFolder;

// Where files are written that somebody else looks at afterwards: checker_test.py has the format's own
// checker read them.
class Folder {
 public:
  std::filesystem::path operator/(const std::string& name) const {
    const char* kept = std::getenv("TESSERA_ONNX_FOLDER");
    return (kept != nullptr ? std::filesystem::path(kept) : own_.path()) / name;
  }

 private:
  TemporaryFolder own_;
};

std::map<std::string, Tensor> run(const std::filesystem::path& path,
                                  const std::map<std::string, Tensor>& inputs) {
  program::Runner runner(load(path), {.devices = {Device::reference()}});
  std::map<std::string, program::Item> items(inputs.begin(), inputs.end());
  std::map<std::string, Tensor> outputs;
  for (const auto& [name, item] : runner.run(items)) outputs[name] = *item.tensor();
  return outputs;
}

// One node of the example; operands from the second on are weights where `with_weights`.
struct Example {
  Graph graph{"example"};
  std::map<std::string, Tensor> inputs;
  std::map<std::string, Tensor> weights;
  std::vector<Tensor> tensors;
  const Node* node = nullptr;
};

std::unique_ptr<Example> make_example(const OperatorSchema& schema, const OperatorExample& example,
                                      bool with_weights) {
  auto result = std::make_unique<Example>();
  std::vector<Value*> operands;
  for (const ExampleInput& input : example.inputs) {
    const bool is_weight = with_weights && !operands.empty();
    const std::string name = "input" + std::to_string(operands.size());
    operands.push_back(result->graph.add_input(is_weight ? InputRole::parameter : InputRole::input, name,
                                               {input.data_type, to_symbolic(input.shape)}));
    result->tensors.push_back(
        random_tensor(input.data_type, input.shape, input.low, input.high, operands.size()));
    (is_weight ? result->weights : result->inputs)[name] = result->tensors.back();
  }
  result->node = result->graph.add_node(schema.name, operands, example.attributes);
  return result;
}

// Results that the format does not give: statistics of norms, positions of the largest, sums of exponentials.
size_t written_results(const Node& node) {
  const bool all = node.operator_name() == "split" || node.operator_name() == "top_k";
  return all ? node.outputs().size() : 1;
}

// Whether it was written and compared.
bool check_example(const OperatorSchema& schema, size_t index, bool with_weights,
                   const std::filesystem::path& path) {
  const auto example = make_example(schema, schema.examples[index], with_weights);
  for (size_t i = 0; i < written_results(*example->node); ++i)
    example->graph.add_output("result" + std::to_string(i), example->node->output(i));
  const std::string label = fmt::format("{} {}", schema.name, index);
  try {
    save(example->graph, example->weights, path);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unsupported) << label << ": " << error.what();
    return false;
  }
  std::vector<const Tensor*> operands;
  for (const Tensor& tensor : example->tensors) operands.push_back(&tensor);
  const std::vector<Tensor> expected = run_reference(*example->node, operands);
  const std::map<std::string, Tensor> actual = run(path, example->inputs);
  const testing::Tolerances tolerances = testing::tolerances_of(*example->node, example->tensors);
  for (size_t i = 0; i < written_results(*example->node); ++i)
    expect_close(actual.at("result" + std::to_string(i)), expected[i], tolerances[i], label);
  return true;
}

TEST(OnnxSave, OperatorsGiveTheSameWhenTheyAreReadBack) {
  const Folder folder;
  std::vector<std::string> written;
  for (const OperatorSchema* schema : OperatorRegistry::instance().all()) {
    size_t count = 0;
    for (size_t index = 0; index < schema->examples.size(); ++index) {
      if (schema->traits.random) continue;  // they become inputs
      for (const bool with_weights : {false, true}) {
        const std::string name =
            fmt::format("{}-{}{}.onnx", schema->name, index, with_weights ? "-weights" : "");
        count += check_example(*schema, index, with_weights, folder / name) ? 1 : 0;
      }
    }
    if (count > 0) written.push_back(schema->name);
  }
  EXPECT_GE(written.size(), 75u) << fmt::format("{}", fmt::join(written, " "));
}

// A task's variables as a run begins with them; those that begin as ones and zeros moved away from that, so
// that each of them matters.
std::map<std::string, Tensor> starting_variables(const std::vector<nn::Variable>& variables) {
  std::map<std::string, Tensor> values;
  for (const nn::Variable& variable : variables) {
    Tensor value = train::starting_value(variable, 7);
    if (value.shape().size() == 1 && is_floating(value.data_type())) {
      const Tensor moved = random_tensor(value.data_type(), value.shape(), -0.3, 0.5, values.size());
      for (int64_t i = 0; i < value.size(); ++i) value.set(i, std::abs(value.at(i)) + moved.at(i));
    }
    values[variable.name] = nn::to_file_layout(variable, value);
  }
  return values;
}

// Of a test that could not fail: all rows are the same.
bool differs_between_rows(const Tensor& tensor) {
  const std::vector<double> values = tensor.to_doubles();
  const auto row = static_cast<std::ptrdiff_t>(values.size()) / tensor.shape()[0];
  return !std::equal(values.begin(), values.begin() + row, values.end() - row);
}

// What the task serves at that batch size, by the reference; and in `inputs` what a model is given for it.
std::map<std::string, Tensor> serve(const nn::Task& task, int64_t batch,
                                    const std::map<std::string, Tensor>& variables,
                                    std::map<std::string, Tensor>& inputs) {
  const train::StepGraph served = train::build_frozen(task, train::Reading::inference, {{"batch", batch}});
  std::map<std::string, Tensor> values;
  for (const nn::Variable& variable : served.variables)
    values[variable.name] = nn::from_file_layout(variable, variables.at(variable.name));
  std::vector<Tensor> feeds;
  for (const auto& input : served.graph->inputs()) {
    if (input->role() == InputRole::input) {
      const double most = input->data_type() == DataType::uint8 ? 255 : 2;
      inputs[input->name()] =
          random_tensor(input->data_type(), input->type().static_shape(), 0, most, inputs.size() + 1);
      feeds.push_back(inputs[input->name()]);
    } else {
      feeds.push_back(values.at(input->name()));
    }
  }
  for (const auto& node : served.graph->nodes()) {
    if (!node->schema().traits.random) continue;
    const Tensor* counter = &values.at("random_counter");
    inputs["noise"] = run_reference(*node, std::span(&counter, 1)).front();
  }
  const ReferenceResult result = run_reference(*served.graph, feeds);
  std::map<std::string, Tensor> outputs;
  for (size_t i = 0; i < result.outputs.size(); ++i)
    outputs[served.graph->outputs()[i].name] = result.outputs[i];
  return outputs;
}

void check_task(const nn::Task& task, const std::string& name) {
  const Folder folder;
  const train::StepGraph served = train::build_frozen(task, train::Reading::inference, {{"batch", 1}});
  const std::map<std::string, Tensor> variables = starting_variables(served.variables);
  save(task, variables, folder / name, {.metadata = {{"task", task.name}}});
  for (const int64_t batch : {1, 3}) {
    std::map<std::string, Tensor> inputs;
    const std::map<std::string, Tensor> expected = serve(task, batch, variables, inputs);
    const std::map<std::string, Tensor> actual = run(folder / name, inputs);
    ASSERT_EQ(actual.size(), expected.size());
    // A few layers, each a sum of at most some hundred terms of about one in fp32.
    for (const auto& [output, tensor] : expected) {
      expect_close(actual.at(output), tensor, {1e-4, 1e-4}, fmt::format("{} {} of {}", name, output, batch));
      EXPECT_TRUE(batch == 1 || differs_between_rows(tensor)) << name;
    }
  }
}

TEST(OnnxSave, ClassifiersTakeBytesAtAnyBatchSize) {
  const tasks::ImageClassificationOptions options{
      .images = {.type = DataType::uint8, .mean = {0.3F}, .deviation = {0.4F}}};
  for (const char* name : {"mlp", "lenet", "resnet_small"})
    check_task(tasks::image_classification(models::create(name), options), std::string(name) + ".onnx");
}

TEST(OnnxSave, AGeneratorTakesItsNoise) {
  check_task(tasks::gan({.image_size = 8, .noise = 5, .width = 4}), "gan.onnx");
}

TEST(OnnxSave, ALanguageModelFillsGaps) {
  check_task(tasks::masked_language_model({.tokens = 12, .vocabulary = 30, .width = 16}), "language.onnx");
}

TEST(OnnxSave, AClickThroughNetworkLooksUpItsTables) {
  check_task(tasks::click_through({.entries = {5, 7, 3}, .numbers = 4, .width = 8}), "click_through.onnx");
}

TEST(OnnxSave, CountsAlongExtentsThatAreOpen) {
  Graph graph;
  const Dimension batch = Dimension::symbol("batch");
  const Dimension tokens = Dimension::symbol("tokens");
  Value* q = graph.add_input(InputRole::input, "q", {DataType::fp32, {batch, 2, tokens, 4}});
  Value* lengths = graph.add_input(InputRole::input, "lengths", {DataType::int32, {batch}});
  graph.add_output("attended", ops::attention(q, q, q, {.causal = true}).y);
  graph.add_output("ended", ops::attention(q, q, q, {.key_lengths = lengths}).y);
  graph.add_output("placed", ops::add(q, ops::iota(graph, {2, tokens, 1}, 1, DataType::fp32)));
  graph.add_output("numbered", ops::iota(graph, {batch, tokens}, -1, DataType::int32));
  graph.add_output("counted", ops::count_elements(graph, {batch, tokens}, DataType::int32));
  Value* heads = graph.add_input(InputRole::input, "heads", {DataType::fp32, {batch, 4, tokens, 4}});
  graph.add_output("shared", ops::attention(heads, q, q, {.causal = true}).y);
  const Folder folder;
  save(graph, {}, folder / "open.onnx");
  for (const auto& [rows, length] : {std::pair<int64_t, int64_t>{1, 1}, {3, 5}}) {
    const std::map<std::string, Tensor> inputs{
        {"q", random_tensor(DataType::fp32, {rows, 2, length, 4}, -1, 1, 5)},
        {"lengths", random_tensor(DataType::int32, {rows}, 1, static_cast<double>(length), 6)},
        {"heads", random_tensor(DataType::fp32, {rows, 4, length, 4}, -1, 1, 7)}};
    const std::map<std::string, Tensor> actual = run(folder / "open.onnx", inputs);
    const auto known = specialize(graph, {{"batch", rows}, {"tokens", length}});
    const std::vector<Tensor> expected =
        run_reference(*known, std::vector<Tensor>{inputs.at("q"), inputs.at("lengths"), inputs.at("heads")})
            .outputs;
    // A softmax of five numbers of about one, and a sum of as many.
    expect_close(actual.at("attended"), expected[0], {1e-6, 1e-6}, "attended");
    expect_close(actual.at("ended"), expected[1], {1e-6, 1e-6}, "ended");
    EXPECT_TRUE(actual.at("placed").identical(expected[2]));
    EXPECT_TRUE(actual.at("numbered").identical(expected[3]));
    EXPECT_TRUE(actual.at("counted").identical(expected[4]));
    expect_close(actual.at("shared"), expected[5], {1e-6, 1e-6}, "shared");
  }
}

std::map<DataType, uint64_t> bytes_by_type(const program::Block& block) {
  std::map<DataType, uint64_t> bytes;
  for (const auto& [name, item] : block.constants)
    bytes[item.tensor()->data_type()] += item.tensor()->bytes();
  return bytes;
}

// Written and read back, what the task serves is that in fp32, up to a share of the largest number of each
// output; most weights are in 16 bits.
void check_narrow(const nn::Task& task, const std::string& name, Precision precision, double share) {
  const Folder folder;
  const std::string file = fmt::format("{}-{}.onnx", name, to_string(precision));
  const std::map<std::string, Tensor> variables =
      starting_variables(train::build_frozen(task, train::Reading::inference, {{"batch", 1}}).variables);
  std::map<std::string, Tensor> inputs;
  const std::map<std::string, Tensor> expected = serve(task, 3, variables, inputs);
  save(task, variables, folder / file, {.precision = precision});
  const auto bytes = bytes_by_type(*load(folder / file)->main);
  EXPECT_GT(bytes.at(precision == Precision::fp16 ? DataType::fp16 : DataType::bf16),
            bytes.at(DataType::fp32));
  const std::map<std::string, Tensor> actual = run(folder / file, inputs);
  for (const auto& [output, tensor] : expected) {
    double largest = 0;
    for (const double value : tensor.to_doubles()) largest = std::max(largest, std::abs(value));
    expect_close(actual.at(output), tensor, {share * largest, 0}, file);
    EXPECT_FALSE(actual.at(output).identical(tensor)) << file;
  }
}

// Some ten layers, each of which rounds to 11 or 8 digits.
TEST(OnnxSave, NarrowTypesOfWeights) {
  for (const auto& [precision, share] :
       {std::pair(Precision::fp16, 1e-2), std::pair(Precision::bf16, 8e-2)}) {
    check_narrow(
        tasks::image_classification(models::create("resnet_small"), {.images = {.type = DataType::uint8}}),
        "resnet", precision, share);
    check_narrow(tasks::gan({.image_size = 8, .noise = 5, .width = 4}), "gan", precision, share);
    check_narrow(tasks::masked_language_model({.tokens = 12, .vocabulary = 30, .width = 16}), "language",
                 precision, share);
    check_narrow(tasks::click_through({.entries = {5, 7, 3}, .numbers = 4, .width = 8}), "click_through",
                 precision, share);
  }
}

TEST(OnnxSave, LargeWeightsInAFileBesideTheModel) {
  const Folder folder;
  const nn::Task task =
      tasks::image_classification(models::create("lenet"), {.images = {.type = DataType::fp32}});
  const std::map<std::string, Tensor> variables =
      starting_variables(train::build_frozen(task, train::Reading::inference, {{"batch", 1}}).variables);
  save(task, variables, folder / "inside.onnx");
  save(task, variables, folder / "asked.onnx", {.external_data = true});
  save(task, variables, folder / "needed.onnx", {.most_bytes = 100'000});
  EXPECT_FALSE(std::filesystem::exists(folder / "inside.onnx.data"));
  const auto inside = load(folder / "inside.onnx");
  for (const char* name : {"asked.onnx", "needed.onnx"}) {
    EXPECT_GT(std::filesystem::file_size(folder / "inside.onnx"), 200'000U);
    EXPECT_LT(std::filesystem::file_size(folder / name), 10'000U);
    EXPECT_GT(std::filesystem::file_size(folder / (name + std::string(".data"))), 200'000U);
    const auto loaded = load(folder / name);
    ASSERT_EQ(loaded->main->constants.size(), inside->main->constants.size());
    for (const auto& [constant, item] : inside->main->constants)
      EXPECT_TRUE(loaded->main->constants.at(constant).tensor()->identical(*item.tensor())) << constant;
  }
}

// Convolutions want their channels first, and what lies between them does not mind.
TEST(OnnxSave, TransposesOnceBeforeAndOnceAfterConvolutions) {
  const Folder folder;
  const auto graph = parse_graph(R"(
graph g(input %x: fp32[batch, 6, 6, 2], parameter %w: fp32[2, 3, 3, 2], parameter %b: fp32[2]) {
  %y0 = convolution(%x, %w) {dilations = [1, 1], padding_high = [1, 1], padding_low = [1, 1], strides = [1, 1]}
  %y1 = add(%y0, %b)
  %y2 = relu(%y1)
  %y3 = convolution(%y2, %w) {dilations = [1, 1], padding_high = [1, 1], padding_low = [1, 1], strides = [1, 1]}
  %y4 = add(%y3, %x)
  %y5 = reduce_mean(%y4) {axes = [1, 2]}
  output y = %y5
})");
  const Tensor w = random_tensor(DataType::fp32, {2, 3, 3, 2}, -1, 1, 1);
  save(*graph, {{"w", w}, {"b", random_tensor(DataType::fp32, {2}, -1, 1, 2)}}, folder / "layout.onnx");
  std::map<std::string, int> counts;
  const auto loaded = load(folder / "layout.onnx");
  for (const program::Instruction& one : loaded->main->instructions) ++counts[one.operator_name];
  EXPECT_EQ(counts, (std::map<std::string, int>{
                        {"Transpose", 1}, {"Conv", 2}, {"Add", 2}, {"Relu", 1}, {"ReduceMean", 1}}));
}

TEST(OnnxSave, RefusesWhatTheFormatCannotSay) {
  const Folder folder;
  const auto refuse = [&](const char* text, ErrorCode code, const std::string& part) {
    expect_error(code, part, [&] { save(*parse_graph(text), {}, folder / "none.onnx"); });
    EXPECT_FALSE(std::filesystem::exists(folder / "none.onnx"));
  };
  refuse(R"(
graph g(input %t: fp32[4, 2], input %i: int32[3], input %r: fp32[3, 2]) {
  %y = set_rows(%t, %i, %r)
  output y = %y
})",
         ErrorCode::unsupported, "node 'y': the operator 'set_rows'");
  refuse(R"(
graph g(input %x: fp32[4], parameter %w: fp32[4]) {
  %y = add(%x, %w)
  output y = %y
})",
         ErrorCode::invalid_argument, "the variable 'w'");
  refuse(R"(
graph g(input %x: fp32[4], state %s: fp32[4]) {
  %y = add(%x, %s)
  output y = %y
  update %s = %y
})",
         ErrorCode::unsupported, "updates 's'");
  refuse(R"(
graph g(input %x: fp32[1, 4, 4, 1]) {
  %y, %p = max_pool(%x) {padding_high = [0, 0], padding_low = [0, 0], strides = [2, 2], window = [2, 2]}
  output p = %p
})",
         ErrorCode::unsupported, "'p' is read");
}

}  // namespace
}  // namespace tessera::onnx
