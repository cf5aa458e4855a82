#include <limits>
#include <map>

#include "tessera/base/file.h"

#include "onnx/model.h"
#include "support/expect_failure.h"
#include "support/temporary_folder.h"

namespace tessera::onnx {
namespace {

using testing::expect_error;
using testing::TemporaryFolder;

// y = x + w of two elements.
::onnx::ModelProto sum_model() {
  ::onnx::ModelProto result = model();
  ::onnx::GraphProto& graph = *result.mutable_graph();
  add_input(graph, "x", {2});
  add_constant(graph, "w", {2}, {1, 2});
  add_node(graph, "Add", {"x", "w"}, {"y"});
  add_output(graph, "y");
  return result;
}

std::vector<double> run(const ::onnx::ModelProto& model, const std::filesystem::path& folder = {}) {
  program::Runner runner(parse(model, folder), {.devices = {Device::reference()}});
  return runner.run({{"x", Tensor::from<float>({2}, {10, 20})}}).begin()->second.tensor()->to_doubles();
}

void expect_refused(const ::onnx::ModelProto& model, const std::string& part,
                    const std::filesystem::path& folder = {}) {
  expect_error(ErrorCode::invalid_file, part, [&] { parse(model, folder); });
}

TEST(OnnxImport, RunsWhatItReads) {
  EXPECT_EQ(run(sum_model()), (std::vector<double>{11, 22}));
}

// An activation, which the product before it may end with; with other limits it is two operators.
TEST(OnnxImport, ReadsAClipWithKnownLimitsAsOneOperator) {
  const auto operators = [](const std::vector<float>& low, const std::vector<float>& high) {
    ::onnx::ModelProto clip = model();
    ::onnx::GraphProto& graph = *clip.mutable_graph();
    add_input(graph, "x", {2});
    add_constant(graph, "low", {}, low);
    if (high.empty()) {
      add_input(graph, "high", {});
    } else {
      add_constant(graph, "high", {}, high);
    }
    add_node(graph, "Clip", {"x", "low", "high"}, {"y"});
    add_output(graph, "y");
    const program::Runner runner(parse(clip), {.devices = {Device::reference()}});
    std::map<std::string, TensorType> types{{"x", {DataType::fp32, {2}}}};
    if (high.empty()) types["high"] = {DataType::fp32, {}};
    const auto island = runner.instantiate(types);
    std::vector<std::string> names;
    for (const auto& node : island.graph->nodes()) {
      if (node->operator_name() != "constant") names.push_back(node->operator_name());
    }
    return names;
  };
  EXPECT_EQ(operators({0}, {6}), std::vector<std::string>{"relu6"});
  EXPECT_EQ(operators({-1}, {2}), std::vector<std::string>{"clip"});
  EXPECT_EQ(operators({0}, {std::numeric_limits<float>::infinity()}),
            (std::vector<std::string>{"maximum", "minimum"}));
  EXPECT_EQ(operators({0}, {}), (std::vector<std::string>{"maximum", "minimum"}));
}

TEST(OnnxImport, RefusesOtherFiles) {
  const std::string bytes = sum_model().SerializeAsString();
  const auto all = std::as_bytes(std::span(bytes));
  expect_error(ErrorCode::invalid_file, "no onnx.ModelProto",
               [&] { parse(all.first(all.size() - 3), "cut"); });
  expect_error(ErrorCode::invalid_file, "holds no graph",
               [] { parse(std::span<const std::byte>(), "empty"); });
  expect_error(ErrorCode::io, "nowhere.onnx", [] { load("nowhere.onnx"); });
}

TEST(OnnxImport, RefusesOperatorSetsThatItDoesNotKnow) {
  ::onnx::ModelProto late = sum_model();
  late.mutable_opset_import(0)->set_version(kMostOperatorSet + 1);
  expect_error(ErrorCode::unsupported, "operator set 28", [&] { parse(late); });
  ::onnx::ModelProto foreign = sum_model();
  foreign.mutable_graph()->mutable_node(0)->set_domain("com.example");
  expect_refused(foreign, "imports no operator set of the domain 'com.example'");
}

TEST(OnnxImport, ChecksSizesBeforeItAllocates) {
  ::onnx::ModelProto few = sum_model();
  few.mutable_graph()->mutable_initializer(0)->mutable_float_data()->RemoveLast();
  expect_refused(few, "tensor 'w' holds 1 numbers, its type and shape want 2");
  ::onnx::ModelProto huge = sum_model();
  huge.mutable_graph()->mutable_initializer(0)->set_dims(0, int64_t{1} << 40);
  expect_refused(huge, "tensor 'w' holds 2 numbers");
  huge.mutable_graph()->mutable_initializer(0)->add_dims(int64_t{1} << 40);
  expect_refused(huge, "1099511627776");
  ::onnx::ModelProto negative = sum_model();
  negative.mutable_graph()->mutable_initializer(0)->set_dims(0, -2);
  expect_refused(negative, "[-2]");
  ::onnx::ModelProto raw = sum_model();
  raw.mutable_graph()->mutable_initializer(0)->set_raw_data("1234567");
  expect_refused(raw, "holds 7 bytes, its type and shape want 8");
  ::onnx::ModelProto type = sum_model();
  type.mutable_graph()->mutable_initializer(0)->set_data_type(99);
  expect_refused(type, "99 is no number of an element type");
}

::onnx::ModelProto external_model(const std::string& location, const std::string& offset = "4") {
  ::onnx::ModelProto result = sum_model();
  ::onnx::TensorProto& tensor = *result.mutable_graph()->mutable_initializer(0);
  tensor.clear_float_data();
  tensor.set_data_location(::onnx::TensorProto::EXTERNAL);
  const auto add = [&](const char* key, const std::string& value) {
    auto* entry = tensor.add_external_data();
    entry->set_key(key);
    entry->set_value(value);
  };
  add("location", location);
  add("offset", offset);
  return result;
}

TEST(OnnxImport, ReadsExternalDataBesideTheModel) {
  const TemporaryFolder folder;
  const std::vector<float> values{99, 3, 4};
  std::filesystem::create_directory(folder.path() / "weights");
  write_file(folder.path() / "weights" / "w.bin", std::as_bytes(std::span(values)));
  EXPECT_EQ(run(external_model("weights/w.bin"), folder.path()), (std::vector<double>{13, 24}));
  expect_refused(external_model("weights/w.bin", "8"), "8 bytes from 8 on are wanted, the file has 12",
                 folder.path());
  expect_refused(external_model("weights/w.bin", "18446744073709551615"), "the file has 12", folder.path());
  expect_refused(external_model("weights/w.bin", "-1"), "no number of bytes", folder.path());
  expect_error(ErrorCode::io, "nothing.bin", [&] { parse(external_model("nothing.bin"), folder.path()); });
}

TEST(OnnxImport, ExternalDataStaysInTheFolder) {
  const TemporaryFolder folder;
  const std::vector<float> values{99, 3, 4};
  std::filesystem::create_directory(folder.path() / "model");
  write_file(folder.path() / "secret.bin", std::as_bytes(std::span(values)));
  const auto inside = folder.path() / "model";
  std::filesystem::create_symlink("../secret.bin", inside / "link.bin");
  for (const std::string& location :
       {std::string("../secret.bin"), (folder.path() / "secret.bin").string(),
        std::string("a/../../secret.bin"), std::string("link.bin"), std::string()})
    expect_refused(external_model(location), "outside the model's folder", inside);
  expect_refused(external_model("w.bin"), "a model without a folder");
}

// A function "Twice" of the domain "local": y = k * (x + x), k an attribute.
::onnx::FunctionProto twice() {
  ::onnx::FunctionProto function;
  function.set_name("Twice");
  function.set_domain("local");
  function.add_input("a");
  function.add_output("b");
  function.add_opset_import()->set_version(20);
  ::onnx::NodeProto* sum = function.add_node();
  sum->set_op_type("Add");
  sum->add_input("a");
  sum->add_input("a");
  sum->add_output("y");
  ::onnx::NodeProto* factor = function.add_node();
  factor->set_op_type("Constant");
  factor->add_output("k");
  ::onnx::AttributeProto* value = factor->add_attribute();
  value->set_name("value_float");
  value->set_type(::onnx::AttributeProto::FLOAT);
  value->set_ref_attr_name("factor");
  ::onnx::NodeProto* product = function.add_node();
  product->set_op_type("Mul");
  product->add_input("y");
  product->add_input("k");
  product->add_output("b");
  return function;
}

::onnx::ModelProto function_model() {
  ::onnx::ModelProto result = sum_model();
  auto* import = result.add_opset_import();
  import->set_domain("local");
  import->set_version(1);
  ::onnx::GraphProto& graph = *result.mutable_graph();
  graph.mutable_node(0)->set_output(0, "sum");
  ::onnx::NodeProto* call = add_node(graph, "Twice", {"sum"}, {"y"});
  call->set_domain("local");
  ::onnx::AttributeProto* factor = call->add_attribute();
  factor->set_name("factor");
  factor->set_type(::onnx::AttributeProto::FLOAT);
  factor->set_f(3);
  *result.add_functions() = twice();
  return result;
}

TEST(OnnxImport, PutsFunctionsInPlaceOfTheirCalls) {
  EXPECT_EQ(run(function_model()), (std::vector<double>{66, 132}));
}

TEST(OnnxImport, RefusesFunctionsThatCallThemselves) {
  ::onnx::ModelProto model = function_model();
  ::onnx::FunctionProto& function = *model.mutable_functions(0);
  auto* import = function.add_opset_import();
  import->set_domain("local");
  import->set_version(1);
  function.mutable_node(0)->set_op_type("Twice");
  function.mutable_node(0)->set_domain("local");
  function.mutable_node(0)->mutable_input()->RemoveLast();
  expect_refused(model, "calls itself");
}

TEST(OnnxImport, RefusesCyclesAndValuesGivenTwice) {
  ::onnx::ModelProto cycle = sum_model();
  cycle.mutable_graph()->mutable_node(0)->set_input(1, "y");
  expect_refused(cycle, "'y' is read, but nothing gives it before");
  ::onnx::ModelProto twice = sum_model();
  add_node(*twice.mutable_graph(), "Add", {"x", "x"}, {"y"});
  expect_refused(twice, "given before");
}

TEST(OnnxImport, RefusesGraphsThatAreTooDeep) {
  ::onnx::GraphProto inner;
  add_node(inner, "Constant", {}, {"c"});
  add_output(inner, "c");
  for (int depth = 0; depth < 40; ++depth) {
    ::onnx::GraphProto outer;
    ::onnx::NodeProto* node = add_node(outer, "If", {"x"}, {"r"});
    for (const char* branch : {"then_branch", "else_branch"}) {
      if (depth > 0 && branch[0] == 'e') continue;  // they would grow as powers of two
      ::onnx::AttributeProto* attribute = node->add_attribute();
      attribute->set_name(branch);
      attribute->set_type(::onnx::AttributeProto::GRAPH);
      *attribute->mutable_g() = inner;
    }
    add_output(outer, "r");
    inner = std::move(outer);
  }
  ::onnx::ModelProto deep = model();
  *deep.mutable_graph() = std::move(inner);
  // The format's own reader stops before the importer's limit, or the importer does.
  EXPECT_THROW(parse(deep), Error);
}

TEST(OnnxImport, ListsOperatorsThatItDoesNotKnow) {
  ::onnx::ModelProto unknown = sum_model();
  unknown.mutable_graph()->mutable_node(0)->set_op_type("Subb");
  expect_error(ErrorCode::unsupported, "Subb (opset 20): 1 time", [&] { run(unknown); });
  // A rule holds for the versions that it says.
  ::onnx::ModelProto early = sum_model();
  early.mutable_opset_import(0)->set_version(5);
  expect_error(ErrorCode::unsupported, "Add (opset 5): 1 time", [&] { run(early); });
}

TEST(OnnxImport, InputsMayHaveDefaults) {
  ::onnx::ModelProto result = sum_model();
  add_input(*result.mutable_graph(), "w", {2});
  program::Runner runner(parse(result), {.devices = {Device::reference()}});
  const Tensor x = Tensor::from<float>({2}, {10, 20});
  EXPECT_EQ(runner.run({{"x", x}}).at("y").tensor()->to_doubles(), (std::vector<double>{11, 22}));
  EXPECT_EQ(runner.run({{"x", x}, {"w", x}}).at("y").tensor()->to_doubles(), (std::vector<double>{20, 40}));
}

}  // namespace
}  // namespace tessera::onnx
