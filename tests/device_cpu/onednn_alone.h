// What the tests of oneDNN alone share: none of our kernels runs in them.
#pragma once

#include <string>
#include <vector>

#include <dnnl.hpp>

namespace tessera::testing {

inline std::string onednn_version() {
  const dnnl_version_t* own = dnnl_version();
  return "oneDNN " + std::to_string(own->major) + "." + std::to_string(own->minor) + "." +
         std::to_string(own->patch);
}

// Of either sign, and whole numbers of eighths within 1, which every type of 16 bits holds.
inline float eighth(int64_t index) {
  return static_cast<float>(index * 7919 % 17 - 8) / 8;
}

// Row-major, as a tensor of ours is.
inline dnnl::memory::desc row_major(const dnnl::memory::dims& dims, dnnl::memory::data_type type) {
  dnnl::memory::dims strides(dims.size(), 1);
  for (size_t axis = dims.size(); axis-- > 1;) strides[axis - 1] = strides[axis] * dims[axis];
  return {dims, type, strides};
}

// Images channels last: [N, C, H, W] in oneDNN's order of axes.
inline dnnl::memory::desc channels_last_images(const dnnl::memory::dims& dims, dnnl::memory::data_type type) {
  return {dims, type, dnnl::memory::format_tag::nhwc};
}

// The numbers, in the order of `stored`, as the primitive wants them.
inline dnnl::memory memory_of(const std::vector<float>& values, const dnnl::memory::desc& stored,
                              const dnnl::memory::desc& wanted, dnnl::stream& stream) {
  dnnl::memory wide(stored, stream.get_engine(), const_cast<float*>(values.data()));
  dnnl::memory result(wanted, stream.get_engine());
  dnnl::reorder(wide, result).execute(stream, wide, result);
  stream.wait();
  return result;
}

// The numbers in the memory, in the order of `stored`.
inline std::vector<float> values_in(const dnnl::memory& memory, const dnnl::memory::desc& stored,
                                    dnnl::stream& stream) {
  std::vector<float> result(stored.get_size() / sizeof(float));
  dnnl::memory wide(stored, stream.get_engine(), result.data());
  dnnl::reorder(memory, wide).execute(stream, const_cast<dnnl::memory&>(memory), wide);
  stream.wait();
  return result;
}

}  // namespace tessera::testing
