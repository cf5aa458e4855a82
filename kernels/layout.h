// What the headers share in which a kernel and its host say how shared memory is divided: the host, which
// decides what fits, asks the functions that the kernel makes its constants of. They are C++17 without any
// library.
#pragma once

namespace tessera {

// Elements, bytes or threads; wide enough for what the host has to refuse.
using LayoutSize = long long;

constexpr LayoutSize layout_parts(LayoutSize count, LayoutSize part) {
  return (count + part - 1) / part;
}
constexpr LayoutSize layout_rounded_up(LayoutSize count, LayoutSize multiple) {
  return layout_parts(count, multiple) * multiple;
}

}  // namespace tessera
