// Style sheet and script of the report.
#pragma once

#include <string_view>

namespace tessera::report {

extern const std::string_view kReportStyle;
extern const std::string_view kReportScript;

}  // namespace tessera::report
