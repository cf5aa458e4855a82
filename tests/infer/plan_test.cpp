// Plan files: what they keep, and what is refused.
#include <gtest/gtest.h>

#include "tessera/base/file.h"

#include "infer/plan_case.h"
#include "support/expect_error.h"
#include "support/temporary_folder.h"

namespace tessera::testing {
namespace {

using infer::Plan;
using infer::PlanBuilder;

// The file with its metadata changed.
void rewrite(const std::filesystem::path& path, const std::string& from, const std::string& to) {
  const auto file = data::SafetensorsFile::open(path);
  std::map<std::string, std::string> metadata = file.metadata();
  bool found = false;
  for (auto& [key, text] : metadata) {
    const size_t place = text.find(from);
    if (place == std::string::npos) continue;
    text.replace(place, from.size(), to);
    found = true;
  }
  ASSERT_TRUE(found) << from;
  data::write_safetensors(path, file.read_all(), metadata);
}

class Plans : public ::testing::Test {
 protected:
  void SetUp() override { write_plan(path_, {4, 1}); }
  TemporaryFolder folder_;
  const std::filesystem::path path_ = folder_ / "network.plan";
};

TEST_F(Plans, SayWhatTheyAre) {
  const Plan plan = Plan::open(path_);
  EXPECT_EQ(plan.description().network, "network");
  EXPECT_EQ(plan.description().device.name, "reference");
  ASSERT_EQ(plan.description().sizes.size(), 2);
  EXPECT_EQ(plan.description().sizes.front().batch, 1);
  ASSERT_EQ(plan.inputs().size(), 2);
  EXPECT_EQ(to_string(plan.inputs()[0].type), "fp32[batch, 8]");
  EXPECT_EQ(to_string(plan.inputs()[1].type), "fp32[16]");
  ASSERT_EQ(plan.outputs().size(), 2);
  EXPECT_EQ(to_string(plan.outputs()[0].type), "fp32[batch, 16]");
  EXPECT_EQ(to_string(plan.outputs()[1].type), "int4[3, 3]");
}

// Both sizes read the same, and only what runs read is there.
TEST_F(Plans, KeepEachWeightOnce) {
  const Plan plan = Plan::open(path_);
  EXPECT_EQ(plan.weight_names(), (std::vector<std::string>{"rounded", "table"}));
  EXPECT_TRUE(plan.weight("rounded").identical(weights().at("w").cast(DataType::fp16).cast(DataType::fp32)));
  EXPECT_TRUE(plan.weight("table").identical(weights().at("table")));
}

TEST_F(Plans, GiveTheSameBitsAsWhatTheyWereMadeOf) {
  const Plan plan = Plan::open(path_);
  for (const infer::PlanSize& size : plan.description().sizes) {
    const auto executable = plan.compile(size, Device::reference());
    executable->load([&](const std::string& name) { return plan.weight(name); });
    const auto inputs = inputs_of_rows(size.batch);
    const auto expected = executable_at(size.batch, Device::reference())->run(inputs).at("y");
    EXPECT_TRUE(executable->run(inputs).at("y").identical(expected)) << size.batch;
  }
}

// Sizes that make different things under one name.
TEST_F(Plans, KeepDifferentContentsOfOneNameApart) {
  PlanBuilder builder("network", Device::reference()->description(), frozen());
  for (const int64_t batch : {1, 2}) {
    const auto executable = compile(*network_at(batch), Device::reference(), frozen());
    executable->load([&](const std::string& name) {
      return name == "w" ? Tensor::full(DataType::fp32, {16, 8}, static_cast<double>(batch))
                         : weights().at(name);
    });
    builder.add(batch, *executable);
  }
  builder.write(path_);
  const Plan plan = Plan::open(path_);
  EXPECT_EQ(plan.weight_names(), (std::vector<std::string>{"rounded", "rounded.other2", "table"}));
  EXPECT_EQ(plan.weight("rounded").at(0), 1);
  EXPECT_EQ(plan.weight("rounded.other2").at(0), 2);
  EXPECT_NE(plan.description().sizes[1].graph->find_input("rounded.other2"), nullptr);
}

TEST_F(Plans, AreOfOneDeviceAndItsLibraries) {
  const Plan plan = Plan::open(path_);
  plan.check(Device::reference()->description());
  EXPECT_ERROR(plan.check(Device::cpu()->description()), ErrorCode::unsupported, "network.plan",
               "device 'reference', this is 'cpu'", "build it again");
  DeviceDescription device = Device::reference()->description();
  device.model = "another card";
  EXPECT_ERROR(plan.check(device), ErrorCode::unsupported, "this is 'another card'");
}

TEST_F(Plans, AreOfTheirLibraries) {
  write_plan(path_, {1}, Device::cpu());
  const Plan plan = Plan::open(path_);
  DeviceDescription device = Device::cpu()->description();
  plan.check(device);
  device.versions.at("onednn") = "9.9.9";
  EXPECT_ERROR(plan.check(device), ErrorCode::unsupported, "onednn", "this is '9.9.9'");
  device.versions.erase("onednn");
  EXPECT_ERROR(plan.check(device), ErrorCode::unsupported, "onednn", "this is 'none'");
}

TEST_F(Plans, AreOfOneProgram) {
  rewrite(path_, R"("program":")", R"("program":"older than )");
  EXPECT_ERROR(Plan::open(path_).check(Device::reference()->description()), ErrorCode::unsupported,
               "Tessera 'older than");
}

TEST_F(Plans, OfAnotherFormatAreRefused) {
  const auto file = data::SafetensorsFile::open(path_);
  std::map<std::string, std::string> metadata = file.metadata();
  metadata.at("tessera.plan") = "2";
  data::write_safetensors(path_, file.read_all(), metadata);
  EXPECT_ERROR(Plan::open(path_), ErrorCode::unsupported, "format 2", "format 1");
  data::write_safetensors(path_, file.read_all());
  EXPECT_ERROR(Plan::open(path_), ErrorCode::invalid_file, "it is no plan file");
}

TEST_F(Plans, CutOffAnywhereAreRefused) {
  const std::string whole = read_text_file(path_);
  for (size_t length = 0; length < whole.size(); length += 1 + whole.size() / 97) {
    const std::string part = whole.substr(0, length);
    EXPECT_ERROR(Plan::parse(as_bytes(part), "part"), ErrorCode::invalid_file, "part");
  }
}

TEST_F(Plans, ThatAreDamagedAreRefused) {
  const std::vector<std::pair<std::string, std::string>> damages = {
      {R"("batch":1)", R"("batch":4)"},
      {R"("batch":1)", R"("batch":0)"},
      {R"("sizes")", R"("seizes")"},
      {R"("precision":"fp32")", R"("precision":"fp33")"},
      {"tanh(", "tan(("},
      {"fp32[1, 8]", "fp32[1, 9]"},
      {"fp32[1, 8]", "fp32[many, 8]"},
      {"constant %rounded", "constant %unknown"},
      {"constant %rounded: fp32[16, 8]", "constant %rounded: int32[16, 8]"},
      {R"("deterministic":true)", R"("deterministic":"yes")"},
      {"output y = ", "output z = "},
  };
  for (const auto& [from, to] : damages) {
    write_plan(path_, {4, 1});
    rewrite(path_, from, to);
    EXPECT_ERROR(Plan::open(path_), ErrorCode::invalid_file, "network.plan") << to;
  }
}

TEST_F(Plans, TakeSizesThatFitTogether) {
  PlanBuilder builder("network", Device::reference()->description(), frozen());
  EXPECT_ERROR(builder.write(path_), ErrorCode::invalid_argument, "no size");
  builder.add(2, *executable_at(2, Device::reference()));
  EXPECT_ERROR(builder.add(2, *executable_at(2, Device::reference())), ErrorCode::invalid_argument,
               "batch 2 is there twice");
  builder.add(3, *executable_at(4, Device::reference()));
  EXPECT_ERROR(builder.write(path_), ErrorCode::invalid_argument, "'x'", "fp32[2, 8]", "fp32[4, 8]");
}

// A mean over the batch would be one over what fills it up, too.
TEST_F(Plans, TakeOutputsWithARowForEachSample) {
  PlanBuilder builder("mean", Device::reference()->description(), frozen());
  for (const int64_t batch : {1, 2}) {
    const std::string text = fmt::format(R"(graph mean(input %x: fp32[{}, 8]) {{
  %y = reduce_mean(%x) {{axes = [0]}}
  output y = %y
}})",
                                         batch);
    const auto executable = compile(*parse_graph(text), Device::reference(), frozen());
    executable->load([](const std::string&) { return std::nullopt; });
    builder.add(batch, *executable);
  }
  EXPECT_ERROR(builder.write(path_), ErrorCode::invalid_argument, "output 'y'", "a row for each sample");
}

// Nothing has run there: what is made once is made where the plan is loaded.
TEST_F(Plans, OfADeviceThatOnlyPlansKeepTheVariables) {
  PlanBuilder builder("network", Device::null()->description(), frozen());
  const auto executable = compile(*network_at(2), Device::null(), frozen());
  EXPECT_ERROR(builder.add(2, *executable), ErrorCode::invalid_argument, "nothing says what", "holds");
  builder.add(2, *executable, [](const std::string& name) { return weights().at(name); });
  builder.write(path_);
  const Plan plan = Plan::open(path_);
  EXPECT_EQ(plan.weight_names(), (std::vector<std::string>{"table", "w"}));
  plan.check(Device::null()->description());
  EXPECT_EQ(plan.compile(plan.description().sizes.front(), Device::null())->nodes().size(),
            executable->nodes().size());
}

}  // namespace
}  // namespace tessera::testing
