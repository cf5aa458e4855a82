// Fused nodes that no kernel of their kind takes, run operator by operator.
#include "device_cpu/cpu_case.h"

namespace tessera::testing {
namespace {

void expect_body(const std::string& outputs, const std::string& body, const std::string& results) {
  const Case own =
      text_case("graph g(input %x: fp32[4]) { " + outputs +
                " = fused(%x) {kind = \"something\"} body graph something(input %x: fp32[4]) { " + body +
                " } " + results + " }");
  expect_as_reference(own, OperatorClass::elementwise, {.magnitude = 4});
}

TEST(Unfused, AnOutputThatIsItsInput) {
  expect_body("%a: fp32[4], %b: fp32[4]", "%y = add(%x, %x) output y = %y output x = %x",
              "output a = %a output b = %b");
}

TEST(Unfused, TwoOutputsOfOneValue) {
  expect_body("%a: fp32[4], %b: fp32[4]", "%y = add(%x, %x) output y = %y output z = %y",
              "output a = %a output b = %b");
}

TEST(Unfused, AValueAndItsReshapeAsOutputs) {
  expect_body("%a: fp32[2, 2], %b: fp32[4]",
              "%y = add(%x, %x) %r = reshape(%y) {shape = [2, 2]} output r = %r output y = %y",
              "output a = %a output b = %b");
}

}  // namespace
}  // namespace tessera::testing
