import unittest

from tree import TreeTest


class DocsTest(TreeTest):
    def test_run_block(self):
        self.write("README.md", "<!-- run -->\n```sh\necho once > here\n```\n")
        self.assert_passes("check_docs")
        self.assertFalse((self.root / "here").exists())
        self.assert_passes("check_docs", "--run")
        self.assertTrue((self.root / "here").exists())

    def test_failing_block(self):
        self.write("docs/page.md", "<!-- run -->\n```sh\nfalse\ntrue\n```\n")
        self.assert_fails("check_docs", "docs/page.md:2: the commands failed", "--run")

    def test_unmarked_block(self):
        self.write("README.md", "Text.\n\n```sh\nmake\n```\n")
        self.assert_fails("check_docs", "README.md:3: is it run in CI?")

    def test_other_marks(self):
        self.write(".ci/run", "stage 'quickstart' ./quickstart\n")
        self.write("README.md", "<!-- long -->\n```sh\na\n```\n<!-- needs GPU -->\n```sh\nb\n```\n"
                                "<!-- ci: quickstart -->\n```sh\n./quickstart\n```\n```text\nno command\n```\n")
        self.assert_passes("check_docs", "--run")

    def test_stage_that_is_not_there(self):
        self.write("README.md", "<!-- ci: nothing -->\n```sh\nmake\n```\n")
        self.assert_fails("check_docs", "no stage 'nothing'")

    def test_stage_with_another_command(self):
        self.write(".ci/run", "stage 'quickstart' ./quickstart --epochs 1\n")
        self.write("README.md", "<!-- ci: quickstart -->\n```sh\n./quickstart --data here\n```\n")
        self.assert_fails("check_docs", "no stage 'quickstart' with this command")

    def test_wide_prose(self):
        wide = "word " * 25
        self.write("docs/page.md", f"# Page\n\n{wide}\n")
        self.assert_fails("check_docs", "docs/page.md:3: 125 columns, wrap it at 120")
        self.write("docs/page.md", f"# Page\n\n| {wide} |\n\n```text\n{wide}\n```\n\n[a](https://{'a' * 120})\n")
        self.assert_passes("check_docs")

    def test_file_block(self):
        self.write("examples/a.cpp", "int main() {}\n")
        self.write("README.md", "<!-- file: examples/a.cpp -->\n```cpp\nint main() {}\n```\n")
        self.assert_passes("check_docs")
        self.write("examples/a.cpp", "int main() { return 0; }\n")
        self.assert_fails("check_docs", "README.md:2: differs from examples/a.cpp")

    def test_dead_link(self):
        self.write("README.md", "See [this](docs/none.md).\n")
        self.assert_fails("check_docs", "docs/none.md leads nowhere")

    def test_page_that_no_index_names(self):
        self.write("docs/cuda/a.md", "A page.\n")
        self.assert_passes("check_docs")
        self.write("docs/README.md", "Nothing.\n")
        self.assert_fails("check_docs", "docs/README.md: docs/cuda/a.md is not in it")
        self.write("docs/README.md", "[a](cuda/a.md)\n")
        self.assert_passes("check_docs")
        self.write("docs/cuda/README.md", "An index of its own.\n")
        self.assert_fails("check_docs", "docs/cuda/README.md: docs/cuda/a.md is not in it")


if __name__ == "__main__":
    unittest.main()
