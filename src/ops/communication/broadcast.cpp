#include "ops/communication/communication.h"

namespace tessera::ops {
namespace {

const OperatorRegistration kRegistration{
    rooted_collective({.name = "broadcast",
                       .documentation = "The x of one rank, for all; the others' is not read.",
                       .types = kComputedTypes,
                       .root = "the rank whose x it is",
                       .moves_only = true,
                       .gradient = reduce})};

}  // namespace
}  // namespace tessera::ops
