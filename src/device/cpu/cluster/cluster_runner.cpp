#include "device/cpu/cluster/cluster_runner.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <new>

namespace tessera::cpu {
namespace {

constexpr std::align_val_t kAlignment{64};

// A thread's scratch memory. It outlives the kernels, so that it stays in the cache from one to the next.
struct Scratch {
  char* memory = nullptr;
  size_t bytes = 0;

  ~Scratch() { ::operator delete(memory, kAlignment); }
  char* take(size_t wanted) {
    if (wanted > bytes) {
      ::operator delete(memory, kAlignment);
      memory = nullptr;
      bytes = 0;
      memory = static_cast<char*>(::operator new(wanted, kAlignment));
      bytes = wanted;
    }
    return memory;
  }
};

template <typename T>
void expand_rows(const Program& program, size_t input, const void* base, const Tile& tile, void* out) {
  const std::vector<int64_t>& strides = program.space.strides[input];
  const T* source = static_cast<const T*>(base);
  T* target = static_cast<T*>(out);
  RowCounter counter(program.space, tile.row);
  for (int64_t row = 0; row < tile.rows; ++row, counter.step(), target += tile.columns) {
    const T* start = source + counter.offset(strides);
    if (strides.back() == 0) {
      std::fill_n(target, tile.columns, *start);
    } else {
      std::copy_n(start, tile.columns, target);
    }
  }
}

}  // namespace

TileRunner::TileRunner(const Program& program, const KernelArguments& arguments)
    : program_(program), arguments_(arguments) {
  thread_local Scratch scratch;
  const size_t scalar_bytes = (program.constants.size() * sizeof(uint64_t) + 63) / 64 * 64;
  const size_t buffer_bytes = static_cast<size_t>(program.buffers * program.buffer_bytes);
  char* memory = scratch.take(scalar_bytes + buffer_bytes + 64);
  scalars_ = reinterpret_cast<uint64_t*>(memory);
  buffers_ = memory + scalar_bytes;
  std::copy(program.constants.begin(), program.constants.end(), scalars_);
  bind_slots();
  for (const Instruction& instruction : program.once) execute(instruction, {}, 1);
  if (program.prologue.empty() || program.space.elements() == 0) return;
  const Tile first = program.tiling.tile(0, program.space.rows(), 0);
  for (const Instruction& instruction : program.prologue) execute(instruction, first, first.elements());
}

void TileRunner::bind_slots() {
  pointers_.resize(program_.slots.size());
  for (size_t k = 0; k < program_.slots.size(); ++k) {
    const Slot& slot = program_.slots[k];
    const auto index = static_cast<size_t>(slot.index);
    // Operands are read only, though the slots do not tell.
    const auto input = [&] { return const_cast<char*>(static_cast<const char*>(arguments_.inputs[index])); };
    switch (slot.kind) {
      case Slot::Kind::buffer:
        pointers_[k] = buffers_ + slot.index * program_.buffer_bytes;
        break;
      case Slot::Kind::scalar:
        pointers_[k] = scalars_ + slot.index;
        break;
      case Slot::Kind::fixed:
        pointers_[k] = input();
        break;
      case Slot::Kind::input: {
        const bool dense = program_.inputs[index].contiguous;
        moving_.push_back({k, dense ? nullptr : &program_.space.strides[index], input()});
        walks_rows_ |= !dense;
        break;
      }
      case Slot::Kind::output:
        moving_.push_back({k, nullptr, static_cast<char*>(arguments_.outputs[index])});
        break;
    }
  }
}

void TileRunner::run(const Tile& tile) {
  const int64_t place = tile.row * program_.space.inner() + tile.column;
  for (const Moving& moving : moving_) {
    if (moving.strides == nullptr) {
      pointers_[moving.slot] = moving.base + place * program_.slots[moving.slot].bytes;
    }
  }
  if (walks_rows_) {
    const RowCounter counter(program_.space, tile.row);
    for (const Moving& moving : moving_) {
      if (moving.strides == nullptr) continue;
      const int64_t offset = counter.offset(*moving.strides) + tile.column * moving.strides->back();
      pointers_[moving.slot] = moving.base + offset * program_.slots[moving.slot].bytes;
    }
  }
  const int64_t n = tile.elements();
  for (const Instruction& instruction : program_.body) execute(instruction, tile, n);
}

void TileRunner::execute(const Instruction& instruction, const Tile& tile, int64_t n) {
  if (instruction.kind == Instruction::Kind::expand) return expand(instruction, tile);
  if (instruction.kind == Instruction::Kind::random) return random(instruction, tile, n);
  const void* operands[3];
  for (size_t k = 0; k < 3; ++k) {
    operands[k] = instruction.in[k] < 0 ? nullptr : pointers_[static_cast<size_t>(instruction.in[k])];
  }
  instruction.loop(pointers_[static_cast<size_t>(instruction.out)], operands, instruction.single ? 1 : n);
}

void TileRunner::expand(const Instruction& instruction, const Tile& tile) {
  const auto input = static_cast<size_t>(instruction.index);
  const void* base = arguments_.inputs[input];
  void* out = pointers_[static_cast<size_t>(instruction.out)];
  switch (size_of(program_.inputs[input].type)) {
    case 1:
      return expand_rows<uint8_t>(program_, input, base, tile, out);
    case 2:
      return expand_rows<uint16_t>(program_, input, base, tile, out);
    case 4:
      return expand_rows<uint32_t>(program_, input, base, tile, out);
    default:
      return expand_rows<uint64_t>(program_, input, base, tile, out);
  }
}

void TileRunner::random(const Instruction& instruction, const Tile& tile, int64_t n) {
  const auto* counter =
      static_cast<const int64_t*>(arguments_.inputs[static_cast<size_t>(instruction.index)]);
  const int64_t first = tile.row * program_.space.inner() + tile.column;
  random_uniform(static_cast<uint64_t>(counter[0]), step_stream(instruction.stream, counter[1]),
                 instruction.bits, static_cast<uint64_t>(first),
                 static_cast<float*>(pointers_[static_cast<size_t>(instruction.out)]), n);
}

void TileRunner::reduce(const ReductionLoops& loops, const Tile& tile, char* accumulators) {
  const auto slot = static_cast<size_t>(program_.reduced_slot);
  const char* values = static_cast<const char*>(pointers_[slot]);
  const int64_t row_bytes = tile.columns * program_.slots[slot].bytes;
  const std::vector<int64_t>& strides = program_.result_strides;
  const bool keeps_columns = strides.back() != 0;
  RowCounter counter(program_.space, tile.row);
  if (!keeps_columns) {
    for (int64_t row = 0; row < tile.rows; ++row, counter.step(), values += row_bytes) {
      loops.row(values, tile.columns, accumulators + counter.offset(strides) * kAccumulatorBytes);
    }
    return;
  }
  // Rows that share a result are taken in together.
  const bool runs = strides.size() > 1 && strides[strides.size() - 2] == 0;
  for (int64_t row = 0; row < tile.rows;) {
    const int64_t count = runs ? std::min(counter.run(), tile.rows - row) : 1;
    loops.columns(values, count, tile.columns,
                  accumulators + (counter.offset(strides) + tile.column) * kAccumulatorBytes);
    values += count * row_bytes;
    row += count;
    counter.step(count);
  }
}

}  // namespace tessera::cpu
