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

    def test_precompiled_header_and_memory_of_another_compiler(self):
        source = str(self.root / "src/base/a.cpp")
        self.write("build/cmake_pch.hxx", "#include <vector>\n")
        self.write("build/cmake_pch.hxx.gch", "of another compiler")
        words = ["c++", "-std=c++20", "--param=ggc-min-heapsize=1048576", "-Winvalid-pch", "-include",
                 f"{self.root}/build/cmake_pch.hxx", "-c", source]
        entry = {"directory": str(self.root), "file": source, "arguments": words}
        self.write("build/dev/compile_commands.json", json.dumps([entry]))
        self.write("src/base/a.cpp", "#include <vector>\nstd::vector<int> numbers() { return {1, 2}; }\n")
        self.assert_passes("check_tidy")
        self.write("src/base/a.cpp", "std::vector<int> numbers() { return {1}; }\n")
        self.assert_fails("check_tidy", "use of undeclared identifier 'std'")

    def build_of(self, *names):
        entries = [{"directory": str(self.root), "file": str(self.root / name), "arguments": ["c++", "-std=c++20", "-c", name]}
                   for name in names]
        self.write("build/dev/compile_commands.json", json.dumps(entries))

    def test_files_that_are_looked_at_as_one(self):
        self.build_of("src/base/a.cpp", "src/base/b.cpp")
        self.write("src/base/a.cpp", "int one() { return 1; }\n")
        self.write("src/base/b.cpp", "int two() { return 2; }\n")
        self.assertIn("2 files", self.assert_passes("check_tidy"))
        self.assertIn("1 files", self.assert_passes("check_tidy", "b.cpp"))
        self.write("src/base/b.cpp", "int Two() { return 2; }\n")
        self.assert_fails("check_tidy", "src/base/b.cpp:1:5: error: invalid case style for function 'Two'")

    def test_files_that_are_compiled_as_one(self):
        self.write("build/dev/Unity/unity_0.cpp", "")
        self.build_of("build/dev/Unity/unity_0.cpp")
        self.assert_fails("check_tidy", "TESSERA_UNITY_BUILD=OFF")

    def test_not_configured(self):
        (self.root / "build/dev/compile_commands.json").unlink()
        self.assert_fails("check_tidy", "configure first")


if __name__ == "__main__":
    unittest.main()
