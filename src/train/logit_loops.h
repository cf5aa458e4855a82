// Loops over the logits of a vocabulary at every token that is drawn, by vectors of what the processor has.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace tessera::train {

// highest[i] becomes the logit of that number where it is less. False where a logit is NaN.
bool raise_highest(std::span<float> highest, std::span<const float> logits);

// The numbers of the logits of at least so much, in order; returns how many. There is room for one more than
// those, or for all.
size_t find_at_least(float least, std::span<const float> logits, std::span<uint32_t> numbers);

// How likely tokens are: weights[i] = e^((logits[i] - highest) / temperature), within a few units of the last
// place, and 1 of the highest itself. Of a highest of infinity all that is less has the weight 0. A
// temperature above 0. Returns the sum.
double write_weights(std::span<const float> logits, float highest, double temperature,
                     std::span<double> weights);

}  // namespace tessera::train
