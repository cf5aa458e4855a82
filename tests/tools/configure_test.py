import unittest

from tree import TreeTest

PRESETS = """{"version": 3, "configurePresets": [
  {"name": "dev", "generator": "Ninja", "binaryDir": "${sourceDir}/build"}]}"""


class ConfigureTest(TreeTest):
    def configure(self, text):
        self.write("CMakePresets.json", PRESETS)
        self.write("CMakeLists.txt", f"cmake_minimum_required(VERSION 3.22)\nproject(sample LANGUAGES NONE)\n{text}\n")

    def test_good(self):
        self.configure('set(NAME value)\nmessage("${NAME}")')
        self.assert_passes("check_configure")

    def test_a_variable_that_nothing_sets_fails(self):
        self.configure('message("${NAME}")')
        self.assert_fails("check_configure", "CMakeLists.txt:3 (message):\n  uninitialized variable 'NAME'")

    def test_a_configure_that_fails_is_shown(self):
        self.configure('message(FATAL_ERROR "no compiler")')
        self.assert_fails("check_configure", "no compiler")


if __name__ == "__main__":
    unittest.main()
