import unittest

from tree import TreeTest


class OperatorsTest(TreeTest):
    def setUp(self):
        super().setUp()
        self.write("docs/operators.md", "| Operator | Inputs |\n|---|---|\n| `add` | `a` |\n| `max_pool` | `x` |\n")

    def test_names_of_operators_pass(self):
        self.write("src/passes/a.cpp", 'bool f(const Node& node) { return node.operator_name() == "add"; }\n'
                                       'auto g = nodes_of(graph, "max_pool");\nbool h = node.operator_name() != "fused";\n')
        self.assert_passes("check_operators")

    def test_a_name_that_no_operator_has(self):
        for code, name in (('node.operator_name() == "ad"', "ad"), ('nodes_of(graph(), "maxpool")', "maxpool"),
                           ('producer_of(norm->input(0), "added")', "added"), ('sole_reader(match.members.back()->output(), "sum")', "sum"),
                           ('FusionPattern{.kind = "k", .anchor = "max_pol"}', "max_pol")):
            self.write("src/passes/a.cpp", f"\nauto x = {code};\n")
            self.assert_fails("check_operators", f"src/passes/a.cpp:2: there is no operator '{name}'")
        self.assert_fails("check_operators", "did you mean 'max_pool'?")

    def test_a_name_that_a_variable_holds(self):
        self.write("src/passes/a.cpp", 'bool f() { const std::string& name = node.operator_name();\n return name == "and"; }\n')
        self.assert_fails("check_operators", "src/passes/a.cpp:2: there is no operator 'and', did you mean 'add'?")
        self.write("src/passes/a.cpp", 'bool f() { const std::string& name = attribute.name; return name == "axis" || pass.name == "x"; }\n')
        self.assert_passes("check_operators")

    def test_a_page_without_operators(self):
        self.write("docs/operators.md", "")
        self.assert_fails("check_operators", "docs/operators.md:1: has no row of an operator")


if __name__ == "__main__":
    unittest.main()
