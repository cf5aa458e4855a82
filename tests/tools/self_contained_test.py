import unittest

from tree import TreeTest


class SelfContainedTest(TreeTest):
    def test_good(self):
        self.write("include/tessera/base/good.h", "#pragma once\n#include <string>\nstd::string name();\n")
        self.assert_passes("check_self_contained")

    def test_missing_include(self):
        self.write("include/tessera/base/bad.h", "#pragma once\nstd::string name();\n")
        self.assert_fails("check_self_contained", "include/tessera/base/bad.h: does not compile alone")
        # Only passes are remembered.
        self.assert_fails("check_self_contained", "include/tessera/base/bad.h: does not compile alone")

    def test_what_comes_precompiled_hides_nothing(self):
        self.write("include/tessera/base/error.h", "#pragma once\n#include <string>\nstruct Error { std::string text; };\n")
        self.write("include/tessera/base/good.h", '#pragma once\n#include "tessera/base/error.h"\nError name();\n')
        self.assert_passes("check_self_contained")
        self.write("include/tessera/base/bad.h", "#pragma once\nError name();\n")
        self.assert_fails("check_self_contained", "include/tessera/base/bad.h: does not compile alone")
        self.write("include/tessera/base/bad.h", '#pragma once\n#include "tessera/base/error.h"\nErro name();\n')
        self.assert_fails("check_self_contained", "include/tessera/base/bad.h: does not compile alone")
        self.write("include/tessera/base/bad.h", '#pragma once\n#include "tessera/base/error.h"\nError name();\n')
        self.write("include/tessera/base/error.h", "#pragma once\nstruct Error { std::string text; };\n")
        self.assert_fails("check_self_contained", "include/tessera/base/error.h: does not compile alone")

    def test_missing_guard(self):
        self.write("include/tessera/base/bad.h", "int count();\n")
        self.assert_fails("check_self_contained", "has no #pragma once")

    def test_private_header_in_public_one(self):
        self.write("src/base/secret.h", "#pragma once\n")
        self.write("include/tessera/base/bad.h", '#pragma once\n#include "base/secret.h"\n')
        self.assert_fails("check_self_contained", "base/secret.h")


if __name__ == "__main__":
    unittest.main()
