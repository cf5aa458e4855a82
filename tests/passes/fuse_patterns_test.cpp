// How patterns are looked for, whatever they are.
#include "tessera/graph/operator.h"
#include "tessera/passes/fuse.h"

#include "passes/run_pass.h"
#include "support/expect_error.h"
#include "support/fusions.h"

namespace tessera::testing {
namespace {

// exp and what reads it alone.
FusionPattern exp_with(const std::string& operator_name, const std::string& kind) {
  FusionPattern pattern{.kind = kind, .anchor = "exp", .roles = {"x", "y", "end"}};
  pattern.match = [operator_name](Node& node) -> std::optional<FusionMatch> {
    Node* reader = sole_reader(node.output(), operator_name);
    if (reader == nullptr) return std::nullopt;
    FusionMatch match{.members = {&node, reader}, .outputs = {reader->output()}, .roles = {}};
    match.add_roles_of(node);
    match.add_role("end", reader->output());
    return match;
  };
  return pattern;
}

const std::string kText = R"(
  graph g(input %x: fp32[2, 3], input %y: fp32[2, 3]) {
    %e = exp(%x)
    %t = tanh(%e)
    %f = exp(%y)
    %s = sqrt(%f)
    output t = %t
    output s = %s
  })";

std::vector<std::string> kinds_of(const std::string& text, const PassContext& context) {
  const std::unique_ptr<Graph> before = parse_graph(text);
  const std::unique_ptr<Graph> after = parse_graph(text);
  run_pass(*after, "fuse_patterns", context);
  verify(*after);
  expect_same_results(*before, *after, {});
  std::vector<std::string> kinds;
  for (const auto& node : after->nodes())
    kinds.push_back(node->body() == nullptr ? node->operator_name() : node->attributes().text("kind"));
  return kinds;
}

using Kinds = std::vector<std::string>;

TEST(FusePatterns, AreTheDevices) {
  EXPECT_EQ(kinds_of(kText, {}), (Kinds{"exp", "tanh", "exp", "sqrt"}));
  EXPECT_EQ(kinds_of(kText, brings({exp_with("tanh", "a")})), (Kinds{"a", "exp", "sqrt"}));
}

TEST(FusePatterns, NameTheRolesOfTheirValues) {
  const std::unique_ptr<Graph> graph = parse_graph(kText);
  ASSERT_TRUE(run_pass(*graph, "fuse_patterns", brings({exp_with("tanh", "a")})));
  const std::unique_ptr<Graph> read = parse_graph(print(*graph));
  const Node& fused = *nodes_of(*read, "fused").front();
  const auto values = [&](std::string_view role) { return values_in_role(fused, role); };
  EXPECT_EQ(values("x"), std::vector<const Value*>{fused.body()->inputs().front().get()});
  EXPECT_EQ(values("end"), std::vector<const Value*>{fused.body()->outputs().front().value});
  EXPECT_EQ(values("y").front()->producer()->operator_name(), "exp");
  EXPECT_TRUE(values("nobody").empty());
  // The values of an operator play the roles of its schema.
  const Node& plain = *nodes_of(*read, "exp").front();
  EXPECT_EQ(values_in_role(plain, "x"), std::vector<const Value*>{plain.input(0)});
  EXPECT_EQ(values_in_role(plain, "y"), std::vector<const Value*>{plain.output()});
}

TEST(FusePatterns, AreTriedInTheirOrder) {
  FusionPattern wide = exp_with("tanh", "wide");
  EXPECT_EQ(kinds_of(kText, brings({wide, exp_with("tanh", "late")})), (Kinds{"wide", "exp", "sqrt"}));
  // What an alternative takes at one node is gone when the first is tried at the next.
  const std::string chain = R"(
    graph g(input %x: fp32[2, 3]) {
      %e = exp(%x)
      %f = exp(%e)
      %t = tanh(%f)
      output t = %t
    })";
  EXPECT_EQ(kinds_of(chain, brings({exp_with("tanh", "a"), exp_with("exp", "b")})), (Kinds{"exp", "a"}));
  EXPECT_EQ(kinds_of(chain, brings({exp_with("tanh", "a"), alternative(exp_with("exp", "b"))})),
            (Kinds{"b", "tanh"}));
}

TEST(FusePatterns, FuseNothingThatIsNotWorthIt) {
  FusionPattern refused = exp_with("tanh", "a");
  refused.worth = [](const FusionMatch& match) {
    EXPECT_EQ(match.maker("y").operator_name(), "exp");
    return false;
  };
  EXPECT_EQ(kinds_of(kText, brings({refused})), (Kinds{"exp", "tanh", "exp", "sqrt"}));
  EXPECT_EQ(kinds_of(kText, brings({refused, alternative(exp_with("tanh", "b"))})),
            (Kinds{"b", "exp", "sqrt"}));
}

TEST(FusePatterns, LeaveWhatWouldMakeACycle) {
  FusionPattern both{.kind = "both", .anchor = "exp", .roles = {}};
  both.match = [](Node& node) -> std::optional<FusionMatch> {
    Node* sum = nodes_of(node.graph(), "add").front();
    return FusionMatch{.members = {&node, sum}, .outputs = visible_values({&node, sum}), .roles = {}};
  };
  EXPECT_EQ(kinds_of(R"(
    graph g(input %x: fp32[2, 3]) {
      %e = exp(%x)
      %t = tanh(%e)
      %s = add(%e, %t)
      output s = %s
    })",
                     brings({both})),
            (Kinds{"exp", "tanh", "add"}));
}

TEST(FusePatterns, AreSwitchedOffByKind) {
  const PassContext context = brings({exp_with("tanh", "a"), exp_with("sqrt", "b")});
  const auto run = [&](const std::string& disabled) {
    const std::unique_ptr<Graph> graph = parse_graph(kText);
    run_pipeline(*graph, pipeline({}), context, {.disabled = {"fuse_elementwise", disabled}, .dump = {}});
    Kinds kinds;
    for (const auto& node : graph->nodes())
      kinds.push_back(node->body() == nullptr ? node->operator_name() : node->attributes().text("kind"));
    return kinds;
  };
  EXPECT_EQ(run("fuse_elementwise"), (Kinds{"a", "b"}));
  EXPECT_EQ(run("fuse_patterns/a"), (Kinds{"exp", "tanh", "b"}));
  EXPECT_EQ(run("fuse_patterns"), (Kinds{"exp", "tanh", "exp", "sqrt"}));
  EXPECT_ERROR(run("fuse_patterns/c"), ErrorCode::invalid_argument, "fuse_patterns/c");
}

TEST(FusePatterns, DeclareTheirRoles) {
  FusionPattern pattern = exp_with("tanh", "a");
  pattern.roles = {"x", "y"};
  const std::unique_ptr<Graph> graph = parse_graph(kText);
  EXPECT_ERROR(run_pass(*graph, "fuse_patterns", brings({pattern})), ErrorCode::internal,
               "the pattern 'a' declares no role 'end'");
}

TEST(FusePatterns, MayAddMembersAndRewriteWhatIsAround) {
  FusionPattern pattern = exp_with("tanh", "a");
  pattern.complete = [](FusionMatch& match) {
    Graph& graph = match.anchor->graph();
    const InsertionPoint here(graph, &match.maker("end"));
    Node* twin = graph.add_node("negate", {match.value("y")}, {}, "twin");
    match.members.push_back(twin);
    match.outputs.push_back(twin->output());
  };
  pattern.finish = [](const FusionMatch&, Node& fused) {
    EXPECT_EQ(fused.outputs().size(), 2U);
    fused.graph().add_output("twin", fused.output(1));
  };
  const std::unique_ptr<Graph> graph = parse_graph(kText);
  ASSERT_TRUE(run_pass(*graph, "fuse_patterns", brings({pattern})));
  verify(*graph);
  EXPECT_EQ(graph->outputs().back().value->producer()->attributes().text("kind"), "a");
}

TEST(FusedNodes, HaveNoRolesThatNoValuePlays) {
  const auto with = [](const std::string& roles) {
    return "graph g(input %x: fp32[2]) { %y = fused(%x) {kind = \"a\", " + roles +
           "} body graph a(input %x: fp32[2]) { %y = exp(%x) output y0 = %y } output y = %y }";
  };
  EXPECT_NO_THROW(parse_graph(with(R"(role_values = [0, 1], roles = ["x", "y"])")));
  EXPECT_ERROR(parse_graph(with(R"(role_values = [2], roles = ["x"])")), ErrorCode::invalid_graph,
               "role_values names value 2 of 2");
  EXPECT_ERROR(parse_graph(with(R"(role_values = [0, 1], roles = ["x"])")), ErrorCode::invalid_graph,
               "each role has one value");
}

}  // namespace
}  // namespace tessera::testing
