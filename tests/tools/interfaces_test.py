import re
import shutil
import subprocess
import unittest

from tree import ROOT, TreeTest


class InterfacesTest(TreeTest):
    def setUp(self):
        super().setUp()
        self.list("extend.h graph.h", "task.h tessera.h", "pattern.h")
        self.write("include/tessera/tessera.h", '#include "tessera/task.h"\n')
        self.write("include/tessera/extend.h", '#include "tessera/graph.h"\n')
        self.write("include/tessera/onnx.h", '#include "tessera/file.h"\n#include "tessera/task.h"\n')
        self.write("include/tessera/task.h", '#include "tessera/graph.h"\n')
        for name in ("file", "graph", "pattern", "internal"):
            self.write(f"include/tessera/{name}.h", "")
        self.write("src/cpu/CMakeLists.txt", "tessera_plugin(cpu USES common)\n")
        self.write("src/cpu/device.cpp", '#include "tessera/pattern.h"\n#include "tessera/graph.h"\n')
        self.write("src/train/CMakeLists.txt", "tessera_room(train)\n")
        self.write("src/train/trainer.cpp", '#include "tessera/internal.h"\n')
        self.write("examples/train.cpp", "#include <tessera/tessera.h>\n#include <tessera/interface_version.h>\n")

    def list(self, extension, user, backend, onnx="file.h onnx.h"):
        lists = {"EXTENSION": extension, "USER": user, "ONNX": onnx, "BACKEND": backend}
        text = [f"set(TESSERA_{name}_HEADERS\n    " + "\n    ".join(f"tessera/{one}" for one in headers.split()) + ")\n"
                for name, headers in lists.items()]
        self.write("cmake/TesseraInterfaces.cmake", "".join(text))

    def test_as_listed(self):
        self.assertIn("8 headers, 1 of them internal", self.assert_passes("interfaces"))
        listed = self.assert_passes("interfaces", "--list").split("\n")
        self.assertIn("backend    tessera/pattern.h", listed)
        self.assertIn("internal   tessera/internal.h", listed)

    def test_an_interface_that_grows(self):
        self.write("include/tessera/task.h", '#include "tessera/internal.h"\n')
        self.assert_fails("interfaces", "tessera/internal.h is of the users' interface (tessera/tessera.h), and not listed")
        self.write("include/tessera/task.h", "")
        self.write("include/tessera/graph.h", '#include "tessera/internal.h"\n')
        self.assert_fails("interfaces", "tessera/internal.h is of the extension interface")

    def test_what_is_not_reached(self):
        self.list("extend.h graph.h internal.h", "task.h tessera.h", "pattern.h")
        self.assert_fails("interfaces", "tessera/internal.h is listed, and the extension interface")
        self.list("extend.h graph.h", "task.h tessera.h", "internal.h pattern.h")
        self.assert_fails("interfaces", "tessera/internal.h is listed, and the backends does not reach it")

    def test_networks_in_files(self):
        self.write("examples/run.cpp", "#include <tessera/onnx.h>\n#include <tessera/file.h>\n")
        self.assert_passes("interfaces")
        self.write("include/tessera/onnx.h", '#include "tessera/internal.h"\n')
        self.assert_fails("interfaces", "tessera/internal.h is of the interface of networks in files")
        self.assert_fails("interfaces", "tessera/file.h is listed, and the interface of networks in files")

    def test_a_plug_in_that_reads_more(self):
        self.write("src/cpu/device.cpp", '#include "tessera/pattern.h"\n#include "tessera/internal.h"\n')
        self.assert_fails("interfaces", "src/cpu/device.cpp: tessera/internal.h is neither of the extension interface")
        self.write("src/cpu/device.cpp", '#include "tessera/pattern.h"\n')
        self.write("include/tessera/pattern.h", '#include "tessera/internal.h"\n')
        self.assert_fails("interfaces", "tessera/internal.h is of the backends, and not listed")

    def test_all_of_a_folder(self):
        self.list("extend.h graph.h", "task.h tasks/*.h tessera.h", "pattern.h")
        self.write("include/tessera/tasks/one.h", "")
        self.assert_fails("interfaces", "tessera/tasks/one.h is listed, and the users' interface")
        self.write("include/tessera/tessera.h", '#include "tessera/task.h"\n#include "tessera/tasks/one.h"\n')
        self.write("tests/consumer/main.cpp", "#include <tessera/tasks/one.h>\n")
        self.assertIn("9 headers, 1 of them internal", self.assert_passes("interfaces"))

    def test_what_users_cannot_include(self):
        self.write("tests/consumer/main.cpp", "#include <tessera/internal.h>\n")
        self.assert_fails("interfaces", "tests/consumer/main.cpp: tessera/internal.h is not installed")

    def test_the_lists_themselves(self):
        self.list("graph.h extend.h", "task.h tessera.h", "pattern.h")
        self.assert_fails("interfaces", "EXTENSION are not in the order")
        self.list("extend.h graph.h gone.h", "task.h tessera.h", "pattern.h")
        self.assert_fails("interfaces", "there is no tessera/gone.h")


@unittest.skipUnless(shutil.which("cmake") and shutil.which("ninja"), "needs cmake and ninja")
class InterfaceVersionTest(TreeTest):
    """The number of a build tree follows what headers say, and not how they say it."""

    TEXT = "// A pair.\nstruct Pair {\n  int first;\n  int second[2];  // two; of them\n};\n"

    def setUp(self):
        super().setUp()
        for name in ("InterfaceVersion.cmake", "TesseraInterfaces.cmake"):
            self.write(f"cmake/{name}", (ROOT / "cmake" / name).read_text())
        self.write("CMakeLists.txt", "cmake_minimum_required(VERSION 3.22)\nproject(Version LANGUAGES NONE)\n"
                                     "include(cmake/TesseraInterfaces.cmake)\n")
        self.lists = {name: headers.split() for name, headers in
                      re.findall(r"set\(TESSERA_(EXTENSION|BACKEND)_HEADERS\s+([^)]*)\)",
                                 (ROOT / "cmake/TesseraInterfaces.cmake").read_text())}
        for header in [*self.lists["EXTENSION"], *self.lists["BACKEND"]]:
            self.write(f"include/{header}", self.TEXT)
        self.call("cmake", "-S", self.root, "-B", self.root / "build", "-G", "Ninja")
        self.output = self.root / "build/interface/tessera/interface_version.h"

    def call(self, *words):
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL)

    def version(self):
        words = self.output.read_text().split("#define TESSERA_INTERFACE_VERSION ")[1]
        self.assertRegex(words, r'^"[0-9a-f]{12}"\n$')
        return words

    def version_with(self, header, text):
        self.write(f"include/{header}", text)
        self.call("cmake", "--build", self.root / "build", "--target", "tessera_interface_version")
        return self.version()

    def test_every_header_counts(self):
        first = self.version()
        known = {first}
        headers = [self.lists[name][place] for name in ("EXTENSION", "BACKEND") for place in (0, -1)]
        for header in headers:
            known.add(self.version_with(header, self.TEXT.replace("[2]", "[3]")))
        self.assertEqual(len(known), 1 + len(headers))
        for header in headers:
            self.version_with(header, self.TEXT)
        self.assertEqual(self.version(), first)

    def test_words_alone_count(self):
        header, before, written = self.lists["BACKEND"][-1], self.version(), self.output.stat().st_mtime_ns
        for text in (self.TEXT.replace("// A pair.", "// Two [of] them; \"said\" at length."),
                     self.TEXT.replace("{\n  int first", "\n{ int   first")):
            self.assertEqual(self.version_with(header, text), before)
        self.assertEqual(self.output.stat().st_mtime_ns, written)  # what reads it is not compiled anew
        self.assertNotEqual(self.version_with(header, self.TEXT.replace("first", "third")), before)


if __name__ == "__main__":
    unittest.main()
