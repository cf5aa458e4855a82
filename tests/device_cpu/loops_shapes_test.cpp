// The loops that are no clusters, over shapes that cross the bounds of their blocks and threads.
#include "device_cpu/cpu_case.h"
#include "support/decisive_inputs.h"

namespace tessera::testing {
namespace {

void expect_movement(const std::string& text) {
  for (const std::string type : {"fp32", "fp64", "fp16", "int8"}) {
    std::string typed = text;
    for (size_t at = typed.find("TYPE"); at != std::string::npos; at = typed.find("TYPE"))
      typed.replace(at, 4, type);
    expect_as_reference(text_case(typed, 3, -100, 100), OperatorClass::movement, {});
  }
}

TEST(Loops, Transpose) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"[300, 513]", "[1, 0]"},
      {"[5, 64, 67]", "[0, 2, 1]"},
      {"[7, 33, 40]", "[2, 1, 0]"},
      {"[7, 33, 40]", "[1, 0, 2]"},
      {"[3, 5, 7, 11]", "[3, 1, 0, 2]"},
      {"[2, 3, 40, 50]", "[0, 2, 3, 1]"},
      {"[2, 40, 50, 3]", "[0, 3, 1, 2]"},
      {"[1, 9, 1]", "[2, 1, 0]"},
      {"[65536]", "[0]"},
  };
  for (const auto& [shape, permutation] : cases) {
    expect_movement("graph transpose(input %x: TYPE" + shape +
                    ") { %y = transpose(%x) {permutation = " + permutation + "} output y = %y }");
  }
}

// The logarithm of the sum is lost beside the largest logit, where it is added to that first.
TEST(Loops, LogarithmsOfProbabilitiesBesideLargeLogits) {
  for (const float logit : {1e4F, 1e6F, 1e18F, 3e38F}) {
    Case own = text_case(
        "graph far(input %x: fp32[3, 40]) { %y = log_softmax(%x) %p = softmax(%x) output y = %y output p = "
        "%p }");
    own.inputs[0] = Tensor::full(DataType::fp32, {3, 40}, logit);
    const std::vector<double> logarithms(120, std::log(1.0 / 40));
    const std::vector<double> probabilities(120, 1.0 / 40);
    const Tolerance tolerance = tolerance_for(OperatorClass::normalization, DataType::fp32, {.terms = 40});
    const CpuRun run = run_on_cpu(own);
    expect_close(run.outputs[0], logarithms, tolerance, "on the CPU");
    expect_close(run.outputs[1], probabilities, tolerance, "on the CPU");
    const ReferenceResult reference = run_reference(*own.graph, own.inputs);
    expect_close(reference.outputs[0], logarithms, tolerance, "in the reference");
    expect_close(reference.outputs[1], probabilities, tolerance, "in the reference");
  }
}

TEST(Loops, CrossEntropyOfLargeLogits) {
  Case own = text_case(
      "graph far(input %x: fp32[3, 1000], input %l: int32[3]) { %y = cross_entropy(%x, %l) {smoothing = "
      "0.25} "
      "output y = %y }",
      1, 0, 999);
  own.inputs[0] = Tensor::full(DataType::fp32, {3, 1000}, 1.1e18);
  const std::vector<double> losses(3, std::log(1000.0));
  const Tolerance tolerance = tolerance_for(OperatorClass::loss, DataType::fp32, {.terms = 1000});
  expect_close(run_on_cpu(own).outputs[0], losses, tolerance, "on the CPU");
  expect_close(run_reference(*own.graph, own.inputs).outputs[0], losses, tolerance, "in the reference");
}

TEST(Loops, Movement) {
  expect_movement(
      "graph concat(input %a: TYPE[30, 7, 50], input %b: TYPE[30, 1, 50], input %c: TYPE[30, 90, 50]) {"
      "%y = concat(%a, %b, %c) {axis = 1} output y = %y }");
  expect_movement(
      "graph split(input %x: TYPE[700, 65]) { %a: TYPE[700, 1], %b: TYPE[700, 64] = split(%x) {sizes = [1, "
      "64], "
      "axis = -1} output a = %a output b = %b }");
  expect_movement(
      "graph slice(input %x: TYPE[90, 91, 17]) { %y = slice(%x) {starts = [1, -80, 0], limits = [90, 91, "
      "17], "
      "strides = [2, 1, 3]} output y = %y }");
  expect_movement(
      "graph pad(input %x: TYPE[30, 31, 17]) { %y = pad(%x) {low = [1, -2, 3], high = [0, 2, 1], interior = "
      "[0, 1, 0], "
      "value = 3} output y = %y }");
  expect_movement(
      "graph wide(input %x: TYPE[50, 1, 3]) { %y = broadcast_to(%x) {shape = [2, 50, 40, 3]} output y = %y "
      "}");
}

TEST(Loops, Softmax) {
  for (const std::string name : {"softmax", "log_softmax"}) {
    for (const std::string type : {"fp32", "fp64", "fp16", "bf16"}) {
      for (const std::string shape : {"[300, 1000]", "[70, 3]", "[40, 50, 20]", "[1, 20001]"}) {
        for (const std::string axis : {"-1", "0"}) {
          Case own = text_case("graph " + name + "(input %x: " + type + shape + ") { %y = " + name +
                                   "(%x) {axis = " + axis + "} output y = %y }",
                               9, -30, 30);
          make_decisive(*own.graph->nodes().back(), own.inputs);
          expect_as_reference(own);
        }
      }
    }
  }
}

// One number far above the others, infinities and NaN.
TEST(Loops, SoftmaxOfExtremes) {
  Case own = text_case(
      "graph softmax(input %x: fp32[4, 50]) { %y = softmax(%x) %z = log_softmax(%x) output y = %y output z = "
      "%z }");
  own.inputs[0].set(3, 1e30);
  own.inputs[0].set(50 + 7, std::nan(""));
  own.inputs[0].set(100 + 49, -std::numeric_limits<double>::infinity());
  expect_as_reference(own);
}

// More pairs than a block of a product or a cluster has, in every type; and the gradient.
TEST(Loops, Attention) {
  for (const std::string type : {"fp32", "fp64", "fp16", "bf16"}) {
    const std::string wide = type == "fp64" ? type : "fp32";
    for (const std::string causal : {"false", "true"}) {
      const std::string options = "{scale = 0.2, causal = " + causal + "}";
      const std::string q = type + "[2, 3, 70, 40]";
      const std::string k = type + "[2, 3, 130, 40]";
      const std::string v = type + "[2, 3, 130, 33]";
      const std::string y = type + "[2, 3, 70, 33]";
      const std::string log_sum = wide + "[2, 3, 70]";
      const std::string bias = type + "[1, 3, 70, 130]";
      const std::string inputs = "input %q: " + q + ", input %k: " + k + ", input %v: " + v;
      expect_as_reference(text_case("graph attention(" + inputs + ", input %bias: " + bias + ") { %y: " + y +
                                        ", %l: " + log_sum + " = attention(%q, %k, %v, %bias) " + options +
                                        " output y = %y output l = %l }",
                                    7));
      const std::string gradients = "%dq: " + q + ", %dk: " + k + ", %dv: " + v;
      expect_as_reference(text_case("graph gradient(input %dy: " + y + ", " + inputs + ", input %y: " + y +
                                        ", input %l: " + log_sum + ") { " + gradients +
                                        " = attention_gradient(%dy, %q, %k, %v, %y, %l) " + options +
                                        " output dq = %dq output dk = %dk output dv = %dv }",
                                    7, -1, 1));
    }
  }
}

TEST(Loops, CrossEntropy) {
  for (const std::string type : {"fp32", "fp64", "bf16"}) {
    const std::string wide = type == "bf16" ? "fp32" : type;
    for (const std::string options :
         {"{smoothing = 0.0}", "{smoothing = 0.1}", "{classes = 997, smoothing = 0.1}"}) {
      Case own = text_case(
          "graph loss(input %x: " + type + "[200, 1001], input %t: int32[200], input %d: " + wide +
              "[200]) { %l = cross_entropy(%x, %t) " + options + " %g = cross_entropy_gradient(%x, %t, %d) " +
              options + " output l = %l output g = %g }",
          5, 0, 10);
      own.inputs[1].set(17, -100);  // ignored
      for (int64_t row = 0; row < 200; row += 2) own.inputs[0].set(row * 1001 + 1000, 15);
      expect_as_reference(own);
    }
  }
  Case own = text_case(
      "graph loss(input %x: fp32[2, 5], input %t: int64[2]) { %l = cross_entropy(%x, %t) output l = %l }");
  own.inputs[1] = Tensor::from<int64_t>({2}, {5, 1});
  const CpuRun run = run_on_cpu(own);
  EXPECT_TRUE(std::isnan(run.outputs[0].at(0))) << "no such class";
  EXPECT_FALSE(std::isnan(run.outputs[0].at(1)));
}

TEST(Loops, Norms) {
  for (const std::string type : {"fp32", "fp64", "bf16"}) {
    const std::string wide = type == "bf16" ? "fp32" : type;
    const std::string statistics = wide + "[60, 40]";
    expect_as_reference(text_case("graph layer(input %x: " + type + "[60, 40, 300], input %s: " + wide +
                                      "[300], input %b: " + wide + "[300]) { %y: " + type +
                                      "[60, 40, 300], %m: " + statistics + ", %i: " + statistics +
                                      " = layer_norm(%x, %s, %b) output y = %y output m = %m output i = %i }",
                                  5, -1, 3));
    const std::string groups = wide + "[3, 8]";
    expect_as_reference(text_case(
        "graph group(input %x: " + type + "[3, 20, 21, 64], input %s: " + wide + "[64], input %b: " + wide +
            "[64]) { %y: " + type + "[3, 20, 21, 64], %m: " + groups + ", %i: " + groups +
            " = group_norm(%x, %s, %b) {groups = 8} output y = %y output m = %m output i = %i }",
        5, -1, 3));
  }
}

// Rows of whole vectors and of odd ones, more than threads and blocks have at a time.
TEST(Loops, RotaryEmbedding) {
  for (const std::string type : {"fp32", "fp64", "fp16", "bf16"}) {
    const std::string wide = type == "fp64" ? type : "fp32";
    for (const std::string options : {"{inverse = false}", "{inverse = true}", "{interleaved = true}",
                                      "{interleaved = true, inverse = true}"}) {
      for (const auto& [x, angles] : {std::pair<std::string, std::string>{"[3, 70, 5, 64]", "[70, 32]"},
                                      {"[2, 90, 7, 66]", "[2, 90, 33]"},
                                      {"[9, 1, 2]", "[9, 1]"}}) {
        expect_as_reference(text_case(
            "graph rotary(input %x: " + type + x + ", input %c: " + wide + angles + ", input %s: " + wide +
                angles + ") { %y = rotary_embedding(%x, %c, %s) " + options + " output y = %y }",
            6, -2, 2));
      }
    }
  }
}

TEST(Loops, Indexing) {
  for (const std::string type : {"fp32", "fp16", "int64"}) {
    Case own = text_case("graph gather(input %t: " + type +
                             "[500, 33], input %i: int32[3000]) { %y = gather(%t, %i) "
                             "output y = %y }",
                         4, 0, 499);
    expect_as_reference(own, OperatorClass::movement, {});
    own = text_case("graph scatter(input %i: int64[3000], input %u: " + type +
                        "[3000, 33]) { %y = scatter_add(%i, %u) "
                        "{extent = [500]} output y = %y }",
                    4, 0, 499);
    expect_as_reference(own);
  }
  expect_as_reference(
      text_case("graph hot(input %i: int64[400]) { %y = one_hot(%i) {depth = 90} output y = %y }", 4, -3, 99),
      OperatorClass::movement, {});
}

TEST(Loops, Search) {
  for (const std::string type : {"fp32", "bf16", "int32"}) {
    for (const std::string axis : {"0", "1", "2"}) {
      // Few different values, so that there are equals.
      expect_as_reference(
          text_case("graph most(input %x: " + type + "[30, 41, 52]) { %y = argmax(%x) {axis = " + axis +
                        "} output y = %y }",
                    8, 0, 9),
          OperatorClass::movement, {});
    }
    Case own = text_case("graph top(input %x: " + type + "[300, 101]) { %v: " + type +
                             "[300, 5], %i: int32[300, 5] = "
                             "top_k(%x) {k = 5} output v = %v output i = %i }",
                         8, 0, 30);
    if (type != "int32") own.inputs[0].set(7, std::nan(""));
    expect_as_reference(own, OperatorClass::movement, {});
  }
}

TEST(Loops, RandomNumbers) {
  for (const std::string type : {"fp32", "fp64", "fp16"}) {
    for (const std::string name : {"random_normal", "random_uniform"}) {
      const Case own =
          text_case("graph random(input %c: int64[2]) { %y = " + name +
                        "(%c) {shape = [41, 1001], stream = 5, type = " + type + "} output y = %y }",
                    8, 0, 1000);
      expect_as_reference(own, OperatorClass::movement, {});  // the same bits
    }
  }
}

}  // namespace
}  // namespace tessera::testing
