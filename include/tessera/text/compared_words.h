// Texts as they are compared, and as others count them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::text {

// The words by which answers are compared (evaluate-v1.1.py of SQuAD, Rajpurkar et al. 2016): in small
// letters, without the punctuation of ASCII, without "a", "an" and "the".
std::vector<std::string> compared_words(std::string_view text);

// The byte where so many characters of a well-formed text end, or the text does.
size_t end_of_characters(std::string_view text, int64_t count);

}  // namespace tessera::text
