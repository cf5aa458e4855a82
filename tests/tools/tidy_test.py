import json
import unittest

from tree import ROOT, TreeTest


class TidyTest(TreeTest):
    def setUp(self):
        super().setUp()
        self.write(".clang-tidy", (ROOT / ".clang-tidy").read_text())
        source = str(self.root / "src/base/a.cpp")
        entry = {"directory": str(self.root), "file": source,
                 "command": f"c++ -std=c++20 -I{self.root}/include -c {source}"}
        self.write("build/dev/compile_commands.json", json.dumps([entry]))

    def test_good_then_broken_by_a_header(self):
        self.write("include/tessera/base/a.h", "#pragma once\nint add(int a, int b);\n")
        self.write("src/base/a.cpp", '#include "tessera/base/a.h"\nint add(int a, int b) { return a + b; }\n')
        self.assert_passes("check_tidy")
        self.write("include/tessera/base/a.h", "#pragma once\nint add(int a, int b);\nint AddAll(int a);\n")
        self.assert_fails("check_tidy", "readability-identifier-naming")

    def test_bug(self):
        self.write("src/base/a.cpp", "#include <memory>\n#include <utility>\nint twice(std::unique_ptr<int> value) {\n"
                                     "  auto moved = std::move(value);\n  return *moved + *value;\n}\n")
        self.assert_fails("check_tidy", "bugprone-use-after-move")

    def test_precompiled_header_of_another_compiler(self):
        source = str(self.root / "src/base/a.cpp")
        self.write("build/cmake_pch.hxx", "#include <vector>\n")
        self.write("build/cmake_pch.hxx.gch", "of another compiler")
        words = ["c++", "-std=c++20", "-Winvalid-pch", "-include", f"{self.root}/build/cmake_pch.hxx", "-c", source]
        entry = {"directory": str(self.root), "file": source, "arguments": words}
        self.write("build/dev/compile_commands.json", json.dumps([entry]))
        self.write("src/base/a.cpp", "#include <vector>\nstd::vector<int> numbers() { return {1, 2}; }\n")
        self.assert_passes("check_tidy")
        self.write("src/base/a.cpp", "std::vector<int> numbers() { return {1}; }\n")
        self.assert_fails("check_tidy", "use of undeclared identifier 'std'")

    def test_not_configured(self):
        (self.root / "build/dev/compile_commands.json").unlink()
        self.assert_fails("check_tidy", "configure first")


if __name__ == "__main__":
    unittest.main()
