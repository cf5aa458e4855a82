#include "tessera/report/machine.h"

#include <gtest/gtest.h>

namespace tessera::report {
namespace {

TEST(Machine, CountsCoresOfTwoPackages) {
  MachineInfo machine;
  std::string text;
  for (int thread = 0; thread < 8; ++thread) {  // two packages of two cores of two threads
    text += "processor\t: " + std::to_string(thread) +
            "\nmodel name\t: Some CPU @ 2.00GHz\nphysical id\t: " + std::to_string(thread % 2) +
            "\ncore id\t\t: " + std::to_string(thread / 2 % 2) + "\n\n";
  }
  parse_cpuinfo(text, machine);
  EXPECT_EQ(machine.processor, "Some CPU @ 2.00GHz");
  EXPECT_EQ(machine.logical_cores, 8);
  EXPECT_EQ(machine.physical_cores, 4);
}

TEST(Machine, CopesWithProcessorsThatTellLittle) {
  MachineInfo machine{.logical_cores = 3};
  parse_cpuinfo("processor : 0\nBogoMIPS : 50.00\nprocessor : 1\nno colon here", machine);
  EXPECT_EQ(machine.processor, "");
  EXPECT_EQ(machine.logical_cores, 2);
  EXPECT_EQ(machine.physical_cores, 2);
  machine = {.logical_cores = 3};
  parse_cpuinfo("", machine);
  EXPECT_EQ(machine.physical_cores, 3);
}

TEST(Machine, ReadsTheSystemsName) {
  EXPECT_EQ(parse_os_release("NAME=\"Debian\"\nPRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\nID=debian"),
            "Debian GNU/Linux 12 (bookworm)");
  EXPECT_EQ(parse_os_release("ID=arch"), "");
}

TEST(Machine, KnowsThisOne) {
  const MachineInfo machine = read_machine();
  EXPECT_FALSE(machine.processor.empty());
  EXPECT_GE(machine.physical_cores, 1);
  EXPECT_GE(machine.logical_cores, machine.physical_cores);
  EXPECT_GE(machine.usable_cores, 1);
  EXPECT_GT(machine.memory_bytes, 1u << 20);
  EXPECT_FALSE(machine.operating_system.empty());
  EXPECT_FALSE(machine.compiler.empty());
  EXPECT_NE(machine.tessera_version, "unknown");
}

}  // namespace
}  // namespace tessera::report
