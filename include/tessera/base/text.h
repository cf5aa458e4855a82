// Small text helpers shared by the parsers and the error messages.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tessera {

// The candidate with the smallest edit distance to `name`, or "" when there is none within half its length.
std::string nearest_name(std::string_view name, const std::vector<std::string>& candidates);

// ", did you mean 'x'?" or "".
std::string did_you_mean(std::string_view name, const std::vector<std::string>& candidates);

// "1.5 GiB", "312 KiB", "17 B".
std::string format_bytes(double bytes);

}  // namespace tessera
