// What evaluators make their parts of a report of; pictures are in report/pictures.h.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tessera/train/evaluator.h"

namespace tessera::report {

// The text with what HTML gives a meaning replaced by entities, for element contents and quoted attributes.
std::string escape_html(std::string_view text);

// What is to be told of the data, a paragraph each.
train::ReportSection remarks_section(const std::vector<std::string>& remarks);

}  // namespace tessera::report
