#include "tessera/distribute/program_identity.h"

#include <cstring>
#include <filesystem>
#include <string_view>

#include <elf.h>
#include <fmt/format.h>
#include <link.h>

namespace tessera::distribute {
namespace {

size_t padded(size_t bytes) {
  return (bytes + 3) / 4 * 4;
}

// In hexadecimal; "" where a segment of notes has none.
std::string build_id_in(const char* notes, size_t bytes) {
  while (bytes >= sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) header;
    std::memcpy(&header, notes, sizeof(header));
    const size_t name = sizeof(header);
    const size_t content = name + padded(header.n_namesz);
    const size_t end = content + padded(header.n_descsz);
    if (end > bytes) break;
    if (header.n_type == NT_GNU_BUILD_ID && std::string_view(notes + name, 3) == "GNU") {
      std::string text;
      for (size_t i = 0; i < header.n_descsz; ++i)
        text += fmt::format("{:02x}", static_cast<unsigned char>(notes[content + i]));
      return text;
    }
    notes += end;
    bytes -= end;
  }
  return "";
}

int add_line(dl_phdr_info* library, size_t /*size*/, void* text) {
  const std::string name = std::filesystem::path(library->dlpi_name).filename().string();
  const bool is_program = name.empty() && static_cast<std::string*>(text)->empty();
  if (!is_program && !name.starts_with("libtessera")) return 0;
  std::string id;
  for (size_t i = 0; i < library->dlpi_phnum && id.empty(); ++i) {
    const ElfW(Phdr)& segment = library->dlpi_phdr[i];
    if (segment.p_type != PT_NOTE) continue;
    id = build_id_in(reinterpret_cast<const char*>(library->dlpi_addr + segment.p_vaddr), segment.p_memsz);
  }
  *static_cast<std::string*>(text) +=
      fmt::format("{} {}\n", is_program ? "program" : name, id.empty() ? "of no known build" : id);
  return 0;
}

}  // namespace

std::string program_identity() {
  std::string text;
  ::dl_iterate_phdr(add_line, &text);
  return text;
}

}  // namespace tessera::distribute
