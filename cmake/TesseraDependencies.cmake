# Every third-party library, found once, as imported targets.
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(tomlplusplus REQUIRED)
find_package(CLI11 REQUIRED)
find_package(ZLIB REQUIRED)
find_path(CSV_INCLUDE_DIR csv.h REQUIRED)
find_library(CSV_LIBRARY csv REQUIRED)
find_package(ICU REQUIRED COMPONENTS uc i18n)
# Its models are refused where it is not there.
find_library(SENTENCE_PIECE_LIBRARY sentencepiece)
find_path(SENTENCE_PIECE_INCLUDE_DIR sentencepiece_processor.h)
if(NOT SENTENCE_PIECE_LIBRARY OR NOT SENTENCE_PIECE_INCLUDE_DIR)
  set(SENTENCE_PIECE_LIBRARY "")
endif()
# Annotations in XML are refused where it is not there.
find_library(PUGIXML_LIBRARY pugixml)
find_path(PUGIXML_INCLUDE_DIR pugixml.hpp)
if(NOT PUGIXML_LIBRARY OR NOT PUGIXML_INCLUDE_DIR)
  set(PUGIXML_LIBRARY "")
endif()
find_package(JPEG REQUIRED)
find_package(PNG REQUIRED)
find_path(WEBP_INCLUDE_DIR webp/decode.h REQUIRED)
find_library(WEBP_LIBRARY webp REQUIRED)
find_path(SNDFILE_INCLUDE_DIR sndfile.h REQUIRED)
find_library(SNDFILE_LIBRARY sndfile REQUIRED)
find_path(SOXR_INCLUDE_DIR soxr.h REQUIRED)
find_library(SOXR_LIBRARY soxr REQUIRED)
find_path(HIGHWAY_INCLUDE_DIR hwy/highway.h REQUIRED)
find_library(HIGHWAY_LIBRARY hwy REQUIRED)
if(NOT TARGET hwy::hwy)
  add_library(hwy::hwy UNKNOWN IMPORTED)
  set_target_properties(hwy::hwy PROPERTIES IMPORTED_LOCATION "${HIGHWAY_LIBRARY}"
                                            INTERFACE_INCLUDE_DIRECTORIES "${HIGHWAY_INCLUDE_DIR}")
endif()

if(TESSERA_ENABLE_CPU)
  find_package(OpenMP REQUIRED COMPONENTS CXX)
  find_package(dnnl CONFIG REQUIRED)
endif()

# The CUDA plug-in needs headers only: its libraries are found at run time.
set(TESSERA_CUDA_FOUND OFF)
if(TESSERA_ENABLE_CUDA)
  find_program(TESSERA_NVCC nvcc PATHS /usr/local/cuda/bin)
  find_path(CUDA_INCLUDE_DIR cublasLt.h PATHS /usr/local/cuda/include)
  find_path(CUDNN_INCLUDE_DIR cudnn.h PATHS /usr/local/cuda/include)
  find_path(NCCL_INCLUDE_DIR nccl.h PATHS /usr/local/cuda/include)
  file(GLOB CUDNN_FRONTEND_FOLDERS "${CMAKE_SOURCE_DIR}/.deps/python/lib/python3*/site-packages/include")
  find_path(CUDNN_FRONTEND_INCLUDE_DIR cudnn_frontend.h PATHS ${CUDNN_FRONTEND_FOLDERS})
  file(GLOB NVJPEG_FOLDERS "${CMAKE_SOURCE_DIR}/.deps/python/lib/python3*/site-packages/nvidia/cu13/include")
  find_path(NVJPEG_INCLUDE_DIR nvjpeg.h PATHS /usr/local/cuda/include ${NVJPEG_FOLDERS})
  if(TESSERA_NVCC AND CUDA_INCLUDE_DIR AND CUDNN_INCLUDE_DIR AND NCCL_INCLUDE_DIR AND CUDNN_FRONTEND_INCLUDE_DIR
     AND NVJPEG_INCLUDE_DIR)
    set(TESSERA_CUDA_FOUND ON)
    add_library(tessera_cuda_headers INTERFACE)
    target_include_directories(tessera_cuda_headers SYSTEM INTERFACE
      "${CUDA_INCLUDE_DIR}" "${CUDNN_INCLUDE_DIR}" "${NCCL_INCLUDE_DIR}" "${CUDNN_FRONTEND_INCLUDE_DIR}"
      "${NVJPEG_INCLUDE_DIR}")
  elseif(NOT TESSERA_ENABLE_CUDA STREQUAL "AUTO")
    message(FATAL_ERROR "TESSERA_ENABLE_CUDA is on, but not all was found: nvcc ${TESSERA_NVCC}, "
                        "cublasLt.h ${CUDA_INCLUDE_DIR}, cudnn.h ${CUDNN_INCLUDE_DIR}, "
                        "nccl.h ${NCCL_INCLUDE_DIR}, "
                        "cudnn_frontend.h ${CUDNN_FRONTEND_INCLUDE_DIR}, "
                        "nvjpeg.h ${NVJPEG_INCLUDE_DIR} (tools/setup installs the last two)")
  endif()
endif()

# The reader of ONNX: protobuf, RE2 for an operator that matches texts, and the wheel that holds the format's description.
set(TESSERA_ONNX_FOUND OFF)
if(TESSERA_ENABLE_ONNX)
  find_package(Protobuf 3.12 QUIET)
  find_file(ONNX_PROTO onnx/onnx-ml.proto PATHS "${CMAKE_SOURCE_DIR}/.deps/onnx" NO_DEFAULT_PATH)
  find_path(RE2_INCLUDE_DIR re2/re2.h)
  find_library(RE2_LIBRARY re2)
  if(Protobuf_FOUND AND ONNX_PROTO AND RE2_INCLUDE_DIR AND RE2_LIBRARY)
    set(TESSERA_ONNX_FOUND ON)
  elseif(NOT TESSERA_ENABLE_ONNX STREQUAL "AUTO")
    message(FATAL_ERROR "TESSERA_ENABLE_ONNX is on, but not all was found: protobuf ${Protobuf_VERSION}, "
                        "onnx-ml.proto ${ONNX_PROTO}, re2 ${RE2_LIBRARY} (tools/setup onnx installs them)")
  endif()
endif()

# The reader of Parquet files: Apache Arrow's libraries, out of a wheel that brings their headers along.
set(TESSERA_PARQUET_FOUND OFF)
if(TESSERA_ENABLE_PARQUET)
  set(ARROW_FOLDER "${CMAKE_SOURCE_DIR}/.deps/arrow")
  file(GLOB ARROW_LIBRARIES "${ARROW_FOLDER}/libarrow.so.*" "${ARROW_FOLDER}/libparquet.so.*")
  list(LENGTH ARROW_LIBRARIES ARROW_LIBRARY_COUNT)
  if(ARROW_LIBRARY_COUNT EQUAL 2 AND EXISTS "${ARROW_FOLDER}/include/parquet/arrow/reader.h")
    set(TESSERA_PARQUET_FOUND ON)
    add_library(tessera_arrow INTERFACE)
    target_include_directories(tessera_arrow SYSTEM INTERFACE "${ARROW_FOLDER}/include")
    target_link_libraries(tessera_arrow INTERFACE ${ARROW_LIBRARIES})
  elseif(NOT TESSERA_ENABLE_PARQUET STREQUAL "AUTO")
    message(FATAL_ERROR "TESSERA_ENABLE_PARQUET is on, but ${ARROW_FOLDER} holds no Arrow (tools/setup extra installs it)")
  endif()
endif()

# Ranks on several machines: MPI, by the wrapper of its compiler.
set(TESSERA_MPI_FOUND OFF)
if(TESSERA_ENABLE_MPI)
  set(MPI_CXX_SKIP_MPICXX ON)
  find_package(MPI 3.0 QUIET COMPONENTS CXX)
  if(MPI_CXX_FOUND)
    set(TESSERA_MPI_FOUND ON)
  elseif(NOT TESSERA_ENABLE_MPI STREQUAL "AUTO")
    message(FATAL_ERROR "TESSERA_ENABLE_MPI is on, but not all was found: mpicxx ${MPI_CXX_COMPILER}, "
                        "mpi.h ${MPI_CXX_HEADER_DIR} (Debian's libopenmpi-dev has both)")
  endif()
endif()

if(TESSERA_BUILD_TESTS)
  find_package(GTest REQUIRED)
  include(GoogleTest)
endif()
