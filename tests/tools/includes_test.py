import unittest

from tree import TreeTest


class IncludesTest(TreeTest):
    def setUp(self):
        super().setUp()
        self.write("include/tessera/base/shape.h", "#pragma once\nnamespace ts {\nclass Shape {\n public:\n  int rank() const;\n};\n"
                                                   "inline constexpr int kMostAxes = 8;\nint volume(const Shape& shape);\n"
                                                   "int rank(const Shape& shape);\n#define TESSERA_SHAPE 1\n}  // namespace ts\n")
        self.write("include/tessera/base/base.h", '#pragma once\n#include "tessera/base/shape.h"\n')

    def assert_names(self, name, body, include=""):
        """It is missed without the header and found with it."""
        self.write("src/base/a.cpp", f"{include}namespace ts {{\n{body}\n}}\n")
        self.assert_fails("check_includes", f"src/base/a.cpp: names {name} without including include/tessera/base/shape.h")
        self.write("src/base/a.cpp", f'#include "tessera/base/base.h"\n{include}namespace ts {{\n{body}\n}}\n')
        self.assert_passes("check_includes")

    def test_each_kind_of_name(self):
        self.assert_names("Shape", "int f(const Shape& s) { return 1; }")
        self.assert_names("Shape", "int f(const ts::Shape& s) { return 1; }")
        self.assert_names("kMostAxes", "int f() { return kMostAxes; }")
        self.assert_names("volume", "int f(auto s) {\n  return volume(s);\n}")
        self.assert_names("TESSERA_SHAPE", "#if TESSERA_SHAPE\n#endif")

    def test_a_header(self):
        self.write("src/base/b.h", "#pragma once\nint f(const Shape& s);\n")
        self.assert_fails("check_includes", "src/base/b.h: names Shape without including")

    def test_names_of_others(self):
        self.write("src/base/a.cpp", "// Shape\nint f(other::Shape s) {\n  return s.volume() + rank(s) + other::volume(s);\n}\n"
                                     'const char* text = "Shape";\n')
        self.assert_passes("check_includes")

    def test_names_of_its_own(self):
        self.write("src/base/a.cpp", "namespace {\nstruct Shape {};\nint volume(Shape s) { return 1; }\n"
                                     "int f(Shape s) {\n  const int kMostAxes = 3;\n  return kMostAxes * volume(s);\n}\n}\n")
        self.write("src/base/b.cpp", "template <class Shape>\nint f(Shape s, int (*volume)(Shape)) {\n  return volume(s);\n}\n")
        self.assert_passes("check_includes")

    def test_a_promise_is_enough(self):
        self.write("src/base/plan.h", "#pragma once\nclass Shape;\n")
        self.write("src/base/a.cpp", '#include "base/plan.h"\nint f(Shape& s) { return 1; }\n')
        self.assert_passes("check_includes")

    def test_a_class_within_a_class(self):
        self.write("src/base/plan.h", "#pragma once\nclass Plan {\n public:\n  struct Shape {};\n};\n")
        self.write("src/base/a.cpp", '#include "base/plan.h"\nint Plan::f(Shape s) { return 1; }\n')
        self.assert_passes("check_includes")
        self.write("src/base/plan.h", "#pragma once\nclass Plan {};\n")
        self.assert_fails("check_includes", "src/base/a.cpp: names Shape")


if __name__ == "__main__":
    unittest.main()
