import unittest

from tree import TreeTest


class LengthsTest(TreeTest):
    def test_long_file_fails(self):
        self.write("src/base/long.cpp", "\n" * 501)
        self.assert_fails("check_lengths", "src/base/long.cpp: 501 lines")

    def test_longish_file_is_reported(self):
        self.write("src/base/longish.cpp", "\n" * 401)
        self.assertIn("src/base/longish.cpp: 401 lines", self.assert_passes("check_lengths"))

    def test_short_file_passes(self):
        self.write("src/base/short.cpp", "\n" * 400)
        self.assertNotIn("short.cpp", self.assert_passes("check_lengths"))


if __name__ == "__main__":
    unittest.main()
