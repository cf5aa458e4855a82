import unittest

from tree import TreeTest


class RoomsTest(TreeTest):
    def setUp(self):
        super().setUp()
        self.write("src/CMakeLists.txt", "add_subdirectory(base)\nadd_subdirectory(graph)\nadd_subdirectory(ops)\n"
                                         "add_subdirectory(data)  # beside the graph\n")
        self.write("src/base/CMakeLists.txt", "tessera_room(base LINK fmt::fmt)\n")
        self.write("src/graph/CMakeLists.txt", "tessera_room(graph USES base)\n")
        self.write("src/ops/CMakeLists.txt", "tessera_room(ops USES graph\n  LINK fmt::fmt)\n")
        self.write("src/data/CMakeLists.txt", "tessera_room(data USES base)\n")
        self.write("include/tessera/tessera.h", "")
        for room in ("base", "graph", "data"):
            self.write(f"include/tessera/{room}/{room}.h", "")
        self.write("src/graph/lexer.h", "")

    def test_room_in_use_directly_or_not(self):
        self.write("src/ops/elementwise/add.cpp", '#include "tessera/graph/graph.h"\n#include "tessera/base/base.h"\n#include <map>\n')
        self.write("src/graph/parse.cpp", '#include "graph/lexer.h"\n')
        self.assert_passes("check_rooms")

    def test_room_below(self):
        self.write("src/base/bad.cpp", '#include "tessera/graph/graph.h"\n')
        self.assert_fails("check_rooms", "is of room graph, which base does not use")

    def test_room_above_that_is_not_used(self):
        self.write("include/tessera/data/bad.h", '#include "tessera/graph/graph.h"\n')
        self.assert_fails("check_rooms", "is of room graph, which data does not use")

    def test_library_of_its_own_is_a_room(self):
        self.write("src/CMakeLists.txt", "add_subdirectory(base)\nadd_subdirectory(graph)\nadd_subdirectory(data)\n"
                                         "add_subdirectory(onnx)\n")
        self.write("src/onnx/CMakeLists.txt", "tessera_library(onnx USES graph LINK fmt::fmt)\n")
        self.write("src/onnx/good.cpp", '#include "tessera/graph/graph.h"\n')
        self.assert_passes("check_rooms")
        self.write("src/onnx/bad.cpp", '#include "tessera/data/data.h"\n')
        self.assert_fails("check_rooms", "is of room data, which onnx does not use")

    def test_private_header_of_another_room(self):
        self.write("src/ops/bad.cpp", '#include "graph/lexer.h"\n')
        self.assert_fails("check_rooms", "is private to room graph")

    def test_what_kernels_and_their_host_share(self):
        self.write("src/CMakeLists.txt", "add_subdirectory(base)\nadd_subdirectory(device/cuda)\n")
        self.write("src/device/cuda/CMakeLists.txt", "tessera_plugin(cuda USES base)\n")
        for header in ("layout.h", "product.cuh"):
            self.write(f"kernels/{header}", "")
        self.write("src/device/cuda/host.cpp", '#include "kernels/layout.h"\n')
        self.assert_passes("check_rooms")
        self.write("src/base/bad.cpp", '#include "kernels/layout.h"\n')
        self.assert_fails("check_rooms", '"kernels/layout.h" is for kernels')
        self.write("src/base/bad.cpp", "")
        self.write("src/device/cuda/host.cpp", '#include "kernels/product.cuh"\n')
        self.assert_fails("check_rooms", '"kernels/product.cuh" is for kernels')

    def test_private_header_in_public_one(self):
        self.write("include/tessera/graph/bad.h", '#include "graph/lexer.h"\n')
        self.assert_fails("check_rooms", "is private to room graph")

    def test_program_beside_the_rooms(self):
        self.write("src/cli/commands.h", "")
        self.write("src/cli/good.cpp", '#include "tessera/data/data.h"\n#include "cli/commands.h"\n')
        self.assert_passes("check_rooms")
        self.write("src/cli/bad.cpp", '#include "graph/lexer.h"\n')
        self.assert_fails("check_rooms", "is private to room graph")

    def test_unknown_file(self):
        self.write("src/base/bad.cpp", '#include "nowhere.h"\n')
        self.assert_fails("check_rooms", "is no file of the project")

    def test_umbrella(self):
        for name in ("tessera", "extend"):
            self.write(f"include/tessera/{name}.h", "")
            self.write("src/base/bad.cpp", f'#include "tessera/{name}.h"\n')
            self.assert_fails("check_rooms", "umbrella")

    def test_use_against_the_order(self):
        self.write("src/base/CMakeLists.txt", "tessera_room(base USES graph)\n")
        self.assert_fails("check_rooms", "base uses graph, which is not a room above it")


if __name__ == "__main__":
    unittest.main()
