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

    def test_prose_fails_too(self):
        self.write("kernels/a.cuh", "// Rows behind the last pixel are zero.\n")
        self.assert_fails("check_names", "kernels/a.cuh:1: not 'behind' but 'after'")
        self.write("kernels/a.cuh", "// Rows after the last pixel are zero.\n")
        self.write("docs/page.md", "# A page\nThe mask is made again.\n")
        self.assert_fails("check_names", "docs/page.md:2: not 'made again' but 'recompute'")
        self.write("docs/page.md", "Times a step on Made-up images,\nwhich lie in front of it.\n")
        self.assert_fails("check_names", "docs/page.md:1: not 'Made-up' but 'synthetic'")

    def test_marks_of_a_merge_fail(self):
        for mark in "<>":
            self.write("docs/page.md", f"# A page\n{7 * mark} HEAD\nOne version.\n")
            self.assert_fails("check_names", "docs/page.md:2: a merge's mark")

    def test_what_is_left_behind_passes(self):
        self.write("docs/page.md", "What fails leaves nothing behind. It is read again.\n")
        self.assert_passes("check_names")

    def test_what_serves_every_task_names_no_images(self):
        self.write("include/tessera/train/a.h", "// Mean over the images of a batch.\n")
        self.assert_fails("check_names", "include/tessera/train/a.h:1: 'images' where no task is known")
        self.write("include/tessera/train/a.h", "// Mean over a batch.\n")
        for place in ("src/recipe/a.cpp", "src/report/a.h", "src/cli/bench.cpp"):
            for text, word in (('auto task = "image_classification";', "image"), ("int image_size = 0;", "image"),
                               ("nn::ImageInput input;", "Image"), ("int best_accuracy;", "accuracy")):
                self.write(place, text + "\n")
                self.assert_fails("check_names", f"{place}:1: '{word}' where no task is known")
            self.write(place, "int imagined = relabeled;\n")
        self.write("src/tasks/a.cpp", "// Mean over the images of a batch.\n")
        self.write("src/cli/named_network.cpp", "int image_size = 0;\n")
        self.assert_passes("check_names")


if __name__ == "__main__":
    unittest.main()
