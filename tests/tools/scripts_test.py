import unittest

from tree import TreeTest


class ScriptsTest(TreeTest):
    def test_good(self):
        self.write("tools/good", '#!/usr/bin/env bash\nset -eu\necho "$1"\n')
        self.write("tools/good.py", "print(1)\n")
        self.assertIn("1 shell and 1 Python", self.assert_passes("check_scripts"))

    def test_bad_shell(self):
        self.write("tools/bad", "#!/usr/bin/env bash\nrm -r $1/*\n")
        self.assert_fails("check_scripts", "SC2086")

    def test_bad_python(self):
        self.write("tests/bad.py", "def f(:\n")
        self.assert_fails("check_scripts", "tests/bad.py:1")


if __name__ == "__main__":
    unittest.main()
