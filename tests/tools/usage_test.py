import os
import shutil
import subprocess
import unittest

from tree import ROOT, TreeTest


class UsageTest(TreeTest):
    def call(self, *words, **environment):
        return subprocess.run([ROOT / words[0], *words[1:]], text=True, check=False, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env={**os.environ, **environment})

    def test_help(self):
        for script in ("quickstart", "test", "tools/setup"):
            result = self.call(script, "--help")
            self.assertEqual(result.returncode, 0, script)
            self.assertIn("usage: ", result.stdout, script)
            self.assertIn("Exit codes", result.stdout, script)

    def test_wrong_usage(self):
        for words in (("quickstart", "--unknown"), ("quickstart", "--data"), ("quickstart", "--epochs", "many"),
                      ("test", "--unknown"), ("test", "two", "names"), ("tools/setup", "everything")):
            result = self.call(*words)
            self.assertEqual(result.returncode, 2, words)
            self.assertIn("usage: ", result.stdout, words)

    def test_long_knows_its_parts(self):
        result = self.call("test", "--long", "--no-build", "nonsense")
        self.assertEqual((result.returncode, result.stdout), (1, "test: no part of --long is named 'nonsense'\n"))

    def test_quickstart_names_the_missing_file(self):
        self.write("train-images-idx3-ubyte", "")
        self.write("train-labels-idx1-ubyte.gz", "")
        result = self.call("quickstart", "--data", str(self.root))
        self.assertEqual(result.returncode, 1)
        self.assertIn("t10k-images-idx3-ubyte", result.stdout)

    def test_quickstart_goes_on_with_a_run(self):
        # Stand-ins for all that it calls: only what it asks of the program is looked at.
        shutil.copy(ROOT / "quickstart", self.root)
        self.write("tools/setup", "#!/bin/sh\n", executable=True)
        self.write("bin/cmake", "#!/bin/sh\n", executable=True)
        self.write("build/release/bin/tessera", "#!/bin/sh\necho called: \"$@\"\n", executable=True)
        for part in ("train-images-idx3", "train-labels-idx1", "t10k-images-idx3", "t10k-labels-idx1"):
            self.write(f"data/{part}-ubyte", "")
        command = [self.root / "quickstart", "--data", self.root / "data", "--out", self.root / "run"]
        environment = {**os.environ, "PATH": f"{self.root / 'bin'}:{os.environ['PATH']}"}
        for begun in (False, True):
            if begun:
                self.write("run/checkpoints/last.safetensors", "")
            told = subprocess.run(command, text=True, check=True, capture_output=True, env=environment).stdout
            self.assertEqual("--resume" in told.splitlines()[0], begun, told)

    def test_setup_without_root_says_what_to_do(self):
        # A dpkg-query that knows no package, no sudo, and another user than root.
        self.write("bin/dpkg-query", "#!/bin/sh\nexit 1\n", executable=True)
        self.write("bin/apt-get", "#!/bin/sh\necho called apt-get\nexit 1\n", executable=True)
        self.write("bin/apt-cache", "#!/bin/sh\necho '  Candidate: 1'\n", executable=True)
        for name in ("bash", "dirname", "sed", "env", "cmp", "cat"):
            (self.root / "bin" / name).symlink_to(f"/usr/bin/{name}")
        self.root.chmod(0o755)
        command = [ROOT / "tools" / "setup", "build"]
        options = {"user": 65534, "group": 65534} if os.getuid() == 0 else {}
        try:
            result = subprocess.run(command, text=True, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                    env={"PATH": str(self.root / "bin")}, **options)
        except PermissionError:
            self.skipTest("the checkout is not readable for other users")
        self.assertEqual(result.returncode, 1, result.stdout)
        self.assertIn("needs root", result.stdout)
        self.assertIn("apt-get install g++ cmake", result.stdout)
        self.assertNotIn("called apt-get", result.stdout)


if __name__ == "__main__":
    unittest.main()
