// Numbers that tell which of two elements of a list stands first, without a walk along the list.
#pragma once

#include <cstdint>
#include <iterator>

namespace tessera {

// Gives the elements from `first` to before `end`, which have just been put there, labels that grow along the
// list, between those of the elements around them; where no room is left, all elements get new ones.
// `label_of` returns a reference to an element's label. After Dietz and Sleator, "Two algorithms for
// maintaining order in a list" (1987), with gaps so wide that labelling anew is rare.
template <typename List, typename LabelOf>
void label_inserted(List& list, typename List::iterator first, typename List::iterator end,
                    LabelOf&& label_of) {
  constexpr int64_t kGap = int64_t{1} << 32;
  if (first == end) return;
  const auto count = static_cast<int64_t>(std::distance(first, end));
  const bool is_front = first == list.begin();
  const bool is_back = end == list.end();
  int64_t label = 0;
  int64_t gap = kGap;
  if (!is_front) {
    label = label_of(*std::prev(first));
    if (!is_back) gap = (label_of(*end) - label) / (count + 1);
  } else if (!is_back) {
    label = label_of(*end) - (count + 1) * kGap;
  }
  if (gap == 0) {
    first = list.begin();
    end = list.end();
    gap = kGap;
  }
  for (auto element = first; element != end; ++element) label_of(*element) = label += gap;
}

}  // namespace tessera
