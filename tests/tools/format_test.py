import unittest

from tree import ROOT, TreeTest


class FormatTest(TreeTest):
    def setUp(self):
        super().setUp()
        self.write(".clang-format", (ROOT / ".clang-format").read_text())

    def test_good(self):
        self.write("src/base/good.cpp", "int add(int a, int b) {\n  return a + b;\n}\n")
        self.assert_passes("check_format")

    def test_bad_and_mended(self):
        self.write("src/base/bad.cpp", "int add( int a,int b ) { return a+b; }\n")
        self.assert_fails("check_format", "code should be clang-formatted")
        self.assert_passes("check_format", "--fix")
        self.assert_passes("check_format")


if __name__ == "__main__":
    unittest.main()
