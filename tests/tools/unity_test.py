import subprocess
import unittest

from tree import ROOT, TreeTest


class UnityTest(TreeTest):
    def groups(self, **sources):
        for name, text in sources.items():
            self.write(f"{name}.cpp", text)
        paths = [self.root / f"{name}.cpp" for name in sources]
        output = subprocess.run([ROOT / "tools/unity_groups", "3", *paths], capture_output=True, text=True, check=True)
        return [[path.rpartition("/")[2] for path in line.split("\t")] for line in output.stdout.splitlines()]

    def test_sources_without_a_common_name_are_one_up_to_the_size(self):
        self.assertEqual(self.groups(a="int f() {\n", b="int g() {\n", c="int h() {\n", d="int i() {\n", e="int j() {\n"),
                         [["a.cpp", "b.cpp", "c.cpp"], ["d.cpp", "e.cpp"]])

    def test_sources_that_share_a_name_are_apart(self):
        for declaration in ("std::vector<int> name(int x) {", "const std::string name = R\"(", "struct name {",
                            "enum class name : uint8_t { a };", "using name = int;", "#define name", "int name[3];",
                            "template <typename T>\nT name(T x) {", "const char* const name{};",
                            "[[maybe_unused]] const bool name = f();"):
            self.assertEqual(self.groups(a=f"{declaration}\n", b=f"{declaration}\n"), [], declaration)

    def test_a_source_is_apart_from_those_that_use_its_own_name_otherwise(self):
        unnamed = "namespace {\nint other() {\n}\n%s\n}  // namespace\n"
        for own, use in (("void name(int x) {", "  name(1.5);"), ("struct Name {", "  Name::of(1);"),
                         ("const int kName = 1;", "  f(kName);"), ("enum class Name {", "  Name name;")):
            self.assertEqual(self.groups(a=unnamed % own, b=f"{use}\n"), [], own)
            self.assertEqual(self.groups(a=f"{use}\n", b=unnamed % own), [], own)
            self.assertEqual(self.groups(a=own + "\n", b=f"{use}\n"), [["a.cpp", "b.cpp"]], own)
        for use in ("  x.name(1);", "  x->name(1);", "  other::name(1);", "  // name(1)", '  f("name(1)");', "  int name = 1;"):
            self.assertEqual(self.groups(a=unnamed % "void name(int x) {", b=f"{use}\n"), [["a.cpp", "b.cpp"]], use)

    def test_what_is_no_name_of_the_file_does_not_count(self):
        for text in ("void Class::name() {", "TEST(Suite, Name) {", "  int name = 0;", "const Registration kRegistration{",
                     'R"(\nname(\n)"', "// name(", "}  // namespace a", "namespace a {", "#include <a>"):
            self.assertEqual(self.groups(a=f"{text}\n", b=f"{text}\n"), [["a.cpp", "b.cpp"]], text)

    def test_a_source_that_undefines_or_is_included_again_is_alone(self):
        for text in ("#undef NAME", '#include "hwy/foreach_target.h"'):
            self.assertEqual(self.groups(a=f"{text}\n", b="int g() {\n"), [], text)


if __name__ == "__main__":
    unittest.main()
