#include "tessera/base/order_labels.h"

#include <list>

#include <gtest/gtest.h>

namespace tessera {
namespace {

struct Element {
  int64_t label = 0;
};
using Elements = std::list<Element>;

int64_t& label_of(Element& element) {
  return element.label;
}

void expect_growing(const Elements& elements) {
  for (auto element = std::next(elements.begin()); element != elements.end(); ++element)
    ASSERT_LT(std::prev(element)->label, element->label);
}

TEST(OrderLabels, GrowAlongTheListWhereverElementsArePut) {
  Elements elements;
  for (int i = 0; i < 10; ++i)
    label_inserted(elements, elements.insert(elements.end(), {}), elements.end(), label_of);
  for (int i = 0; i < 10; ++i)
    label_inserted(elements, elements.insert(elements.begin(), {}), std::next(elements.begin()), label_of);
  expect_growing(elements);
  const auto middle = std::next(elements.begin(), 10);
  for (int i = 0; i < 100; ++i) {
    const auto added = elements.insert(middle, {});
    label_inserted(elements, added, middle, label_of);
    expect_growing(elements);
  }
}

TEST(OrderLabels, SpreadSeveralElementsOverTheRoomThatThereIs) {
  Elements elements(2);
  label_inserted(elements, elements.begin(), elements.end(), label_of);
  const int64_t last = elements.back().label;
  const auto first = elements.insert(std::next(elements.begin()), 1000, {});
  label_inserted(elements, first, std::prev(elements.end()), label_of);
  expect_growing(elements);
  EXPECT_EQ(elements.back().label, last) << "what stood there keeps its label";
}

TEST(OrderLabels, AllBecomeNewWhereNoRoomIsLeft) {
  Elements elements{{5}, {0}, {6}};
  label_inserted(elements, std::next(elements.begin()), std::prev(elements.end()), label_of);
  expect_growing(elements);
}

}  // namespace
}  // namespace tessera
