// A locale that writes 0.25 as 0,25, as the process's own for the life of a scope. It is made on the spot:
// which locales a machine has is up to its owner.
#pragma once

#include <clocale>
#include <cstdlib>
#include <string>

#include "tessera/base/error.h"
#include "tessera/base/file.h"

#include "support/temporary_folder.h"

namespace tessera::testing {

class CommaLocale {
 public:
  CommaLocale() {
    write_file(folder_ / "source",
               "LC_NUMERIC\ndecimal_point \",\"\nthousands_sep \".\"\ngrouping 3;3\nEND LC_NUMERIC\n");
    std::string characters = "<code_set_name> ASCII\n<mb_cur_max> 1\n<mb_cur_min> 1\nCHARMAP\n";
    for (int code = 0; code < 128; ++code) characters += fmt::format("<U{0:04X}> /x{0:02x} c\n", code);
    write_file(folder_ / "characters", characters + "END CHARMAP\n");
    // It warns of the categories that are missing, and ends with 1 although it wrote what there is.
    const std::string command =
        fmt::format("localedef -c -f '{0}/characters' -i '{0}/source' '{0}/comma' >/dev/null 2>&1",
                    folder_.path().string());
    (void)std::system(command.c_str());
    ::setenv("LOCPATH", folder_.path().c_str(), 1);
    require(std::setlocale(LC_NUMERIC, "comma") != nullptr, ErrorCode::internal, "localedef made no locale");
    require(std::strtod("0,25", nullptr) == 0.25, ErrorCode::internal, "the locale has no comma");
  }
  CommaLocale(const CommaLocale&) = delete;
  CommaLocale& operator=(const CommaLocale&) = delete;
  ~CommaLocale() {
    std::setlocale(LC_NUMERIC, "C");
    ::unsetenv("LOCPATH");
  }

 private:
  TemporaryFolder folder_;
};

}  // namespace tessera::testing
