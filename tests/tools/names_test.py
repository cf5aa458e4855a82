import unittest

from tree import TreeTest


class NamesTest(TreeTest):
    def test_another_word_fails(self):
        self.write("src/base/a.cpp", "int add_shortcut(int x);\n")
        self.assert_fails("check_names", "src/base/a.cpp:1: add_shortcut: not 'shortcut' but 'residual'")

    def test_another_spelling_fails(self):
        self.write("kernels/a.cuh", "\nstruct Normalised {};\n")
        self.assert_fails("check_names", "kernels/a.cuh:2: Normalised: not 'Normalis' but 'normaliz'")

    def test_comments_and_texts_pass(self):
        self.write("src/base/b.cpp", '// a shortcut\nauto text = R"(colour)"; auto other = "turned \\" slant";\n')
        self.assert_passes("check_names")

    def test_what_is_returned_passes(self):
        self.write("src/base/c.cpp", "int returned_value = 0;\n")
        self.assert_passes("check_names")


if __name__ == "__main__":
    unittest.main()
