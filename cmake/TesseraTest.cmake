# For tests that start threads of OpenMP or of NVRTC, on whose stacks the leak detector crashes while it looks for pointers.
# Every backend has the same entry by design, so a program that loads two of them has two globals of that name. They are the
# ones that compute most: a third of their time would go into looking for locals that outlive their function, which is done in
# the other rooms (CMakePresets.json), and a sixth into remembering thirty callers of each allocation.
set(TESSERA_LIBRARY_THREADS_ENVIRONMENT "")
if(TESSERA_SANITIZE MATCHES "address")
  set(TESSERA_LIBRARY_THREADS_ENVIRONMENT "ASAN_OPTIONS=detect_leaks=0:detect_odr_violation=1:strict_string_checks=1:malloc_context_size=8")
endif()

# The tests' own code is not what the sanitizers are after, nor what a release is for; without optimization and checks of its
# arithmetic it is compiled in two thirds of the time.
set(TESSERA_TEST_OPTIONS "")
if(TESSERA_SANITIZE MATCHES "address.*undefined")
  set(TESSERA_TEST_OPTIONS -O0 -fno-sanitize=undefined)
elseif(TESSERA_SANITIZE OR CMAKE_BUILD_TYPE STREQUAL "Release")
  set(TESSERA_TEST_OPTIONS -O0)
endif()

# What `./test --light` leaves out, and the target `light_tests` does not build.
set(TESSERA_ROOMS_THAT_COMPUTE device_cpu device_cuda graph_fuzz kernel_fuzz models tasks)

set(TESSERA_TEST_HEADERS ${TESSERA_GRAPH_HEADERS} <gtest/gtest.h>)
tessera_precompiled(tessera_test_headers EXECUTABLE HEADERS ${TESSERA_TEST_HEADERS} LINK fmt::fmt GTest::gtest)
if(TARGET tessera_test_headers)
  target_compile_options(tessera_test_headers PRIVATE ${TESSERA_TEST_OPTIONS})
endif()

# tessera_test_room(NAME [LIBRARY_THREADS] [LIBRARY_THREADS_IN filter] [COMPUTES] LINK target...)
# One folder under tests/ is one executable of all its sources, NAME_tests, and each of its tests one ctest case, NAME.SUITE.TEST.
# LIBRARY_THREADS says that the tests start threads of OpenMP, or of NVRTC, LIBRARY_THREADS_IN that those of the filter alone do,
# so that leaks are looked for after all others; COMPUTES that they find much by loops of their own, so that a release compiles
# them with optimization; LINK names what only these tests need. The header "test_folder.h" defines TESSERA_TEST_FOLDER, the
# folder itself, for the few that read files there: as a flag, the path of the checkout would keep every clone from what another
# has compiled.
function(tessera_test_room NAME)
  if(TESSERA_TEST_ROOMS AND NOT NAME IN_LIST TESSERA_TEST_ROOMS)
    return()
  endif()
  file(GLOB TEST_SOURCES CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/${NAME}/*.cpp")
  tessera_test_program(${NAME} SOURCES ${TEST_SOURCES} ${ARGN})
endfunction()

# tessera_test_program(NAME [LIBRARY_THREADS] [LIBRARY_THREADS_IN filter] [COMPUTES] SOURCES file... LINK target...)
# The same of the named sources.
function(tessera_test_program NAME)
  cmake_parse_arguments(TEST "LIBRARY_THREADS;COMPUTES" "LIBRARY_THREADS_IN" "SOURCES;LINK" ${ARGN})
  set(OPTIONS ${TESSERA_TEST_OPTIONS})
  if(TEST_COMPUTES AND NOT TESSERA_SANITIZE)
    list(TRANSFORM OPTIONS REPLACE "-O0" "-O1")
  endif()
  add_executable(${NAME}_tests ${TEST_SOURCES})
  add_dependencies(room_tests ${NAME}_tests)
  if(NOT NAME IN_LIST TESSERA_ROOMS_THAT_COMPUTE)
    add_dependencies(light_tests ${NAME}_tests)
  endif()
  file(CONFIGURE OUTPUT "${NAME}_folder/test_folder.h" @ONLY
       CONTENT "#define TESSERA_TEST_FOLDER \"@CMAKE_CURRENT_SOURCE_DIR@/@NAME@\"\n")
  target_include_directories(${NAME}_tests PRIVATE "${CMAKE_CURRENT_SOURCE_DIR}"
                                                   "${CMAKE_CURRENT_BINARY_DIR}/${NAME}_folder")
  target_compile_options(${NAME}_tests PRIVATE ${OPTIONS})
  target_link_libraries(${NAME}_tests PRIVATE tessera tessera_test_support ${TEST_LINK} GTest::gtest_main)
  if("OpenMP::OpenMP_CXX" IN_LIST TEST_LINK OR NOT OPTIONS STREQUAL TESSERA_TEST_OPTIONS)
    tessera_precompile(${NAME}_tests ${TESSERA_TEST_HEADERS})
  else()
    tessera_precompile_from(${NAME}_tests tessera_test_headers)
  endif()
  tessera_unite(${NAME}_tests)
  set(PROPERTIES LABELS single)
  if(TEST_LIBRARY_THREADS AND TESSERA_LIBRARY_THREADS_ENVIRONMENT)
    list(APPEND PROPERTIES ENVIRONMENT "${TESSERA_LIBRARY_THREADS_ENVIRONMENT}")
  endif()
  gtest_discover_tests(${NAME}_tests TEST_PREFIX "${NAME}." DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60 NO_PRETTY_VALUES
                       PROPERTIES ${PROPERTIES})
  tessera_add_shards(${NAME} "${TEST_LIBRARY_THREADS}" "${TEST_LIBRARY_THREADS_IN}")
endfunction()

# All tests of a program in a few processes, NAME.shardN, which is what runs where no test is asked for by name: one takes as
# long to start as most tests do, under sanitizers longer. There some are left out: what checks the bounds of other tests,
# compares times, asks NVRTC or nvcc whether the source of a GPU compiles, or stops a training after each of its steps, only to
# go on as it does elsewhere; under that of threads too what repeats a kernel for each type and shape, random plans and texts,
# and trainings that one thread makes; under that of addresses those of several ranks, which are threads: what they share is
# checked under that of threads, and what each does is what one does alone; and trainings that go on until something is learned,
# for curves of some steps in fp32 stay, and the trainer's own resumed runs; convolutions of 16 bits, whose loops are a library's, and
# what repeats a kernel for larger images, more types, other epilogues or more layers; random plans, whose faults lie
# within one block of memory, where the sanitizer sees none; whole networks planned for a GPU, of which some stay.
function(tessera_add_shards NAME LIBRARY_THREADS LIBRARY_THREADS_IN)
  set(SHARDS 6)
  set(LABELS shard)
  if(NAME IN_LIST TESSERA_ROOMS_THAT_COMPUTE)
    list(APPEND LABELS computes)
  endif()
  # Texts for a GPU in bfloat16 are those in fp16 with another type: `./test NAME` and `./test --gpu` compile them.
  set(LEFT_OUT "--gtest_filter=-*CudaCompile/*bf16*:*CudaPooledBatchNorm*.Compile*bf16*")
  if(TESSERA_SANITIZE)
    set(LEFT_OUT "--gtest_filter=-*GraphFuzzBound*:*GrowsNearlyLinearly*:Trainer/Resuming.*:*GeneratedKernelsCompile*:*.CudaCompile/*")
    string(APPEND LEFT_OUT ":*CudaPooledBatchNorm*.Compile*:CudaBatchNormKernels.Compile:CudaEncoderPlan.TextOfItsNormsCompiles"
                           ":KernelSources.CompileWithNvcc*:CudaKernelFuzz.TextOfEveryKernelCompiles*:*CudaCrossEntropy.Compiles*"
                           ":JpegKernel.CompilesForCards")
    if(TESSERA_SANITIZE STREQUAL "thread")
      string(APPEND LEFT_OUT ":DeviceCpu/*:*Registry/*:RandomViews.*:RandomLanes.*:ContinueText.*:TextReader.*:Freezing.*:Streaming.*")
      string(APPEND LEFT_OUT ":ClusterShapes.*:Loops.*:PointwiseConvolution.LargeResultsGoPastTheCaches:Phases.*:ReduceType.*")
    elseif(NAME STREQUAL "train")
      string(APPEND LEFT_OUT ":Ranks.*:Shards.*:Delayed.*:LocalSteps.*:Meetings.*:ReduceType.*")
    elseif(NAME STREQUAL "tasks")
      string(APPEND LEFT_OUT ":*LanguageCurves*16:*.Learns*:*.Foretells*:*.FillsGaps*:*.Serves*:*.ResumesToTheSameBits:*.ResumeToTheSameBits"
                             ":*Ranks*:Translation.OfSeveralBeams*:Translation.OfParts*:TransformerXlTask.AveragesNoMemories*")
    elseif(NAME STREQUAL "compile")
      string(APPEND LEFT_OUT ":RandomViews.*:RandomLanes.*")
    elseif(NAME STREQUAL "nn")
      string(APPEND LEFT_OUT ":RandAugment.AppliesOneOfTheOperationsToEachImage")
    elseif(NAME STREQUAL "device_cpu")
      string(APPEND LEFT_OUT ":DeviceCpu/Convolution.*16:*LoopConvolution.*/*past_the_caches:ClusterShapes.Reductions"
                             ":PointwiseConvolution.LargeResultsGoPastTheCaches:*DepthwiseBlock.EndsWith*")
    elseif(NAME STREQUAL "device_cuda")
      string(APPEND LEFT_OUT ":GroupedClustersPlan.*:NcclPlan.*:CudaEncoderPlan.Norms*:CudaPlan.Recomputes*:CudaPlan.NeedsLess*"
                             ":CudaPlan.TheFlag*:CudaPlan.AddsStatistics*:CudaPlan.RoundsImages*")
    elseif(NAME STREQUAL "models")
      string(APPEND LEFT_OUT ":*vgg*:*resnet101:*resnet152:Models/Compilations.*/resn*")
    endif()
  endif()
  if(LIBRARY_THREADS_IN AND TESSERA_LIBRARY_THREADS_ENVIRONMENT)
    string(APPEND LEFT_OUT ":${LIBRARY_THREADS_IN}")
    add_test(NAME ${NAME}.threads COMMAND ${NAME}_tests --gtest_brief=1 "--gtest_filter=${LIBRARY_THREADS_IN}")
    set_tests_properties(${NAME}.threads PROPERTIES LABELS shard FAIL_REGULAR_EXPRESSION " 0 tests from"
                         ENVIRONMENT "${TESSERA_LIBRARY_THREADS_ENVIRONMENT}")
  endif()
  foreach(SHARD RANGE 1 ${SHARDS})
    math(EXPR INDEX "${SHARD} - 1")
    set(ENVIRONMENT "GTEST_TOTAL_SHARDS=${SHARDS};GTEST_SHARD_INDEX=${INDEX}")
    if(LIBRARY_THREADS)
      list(APPEND ENVIRONMENT "${TESSERA_LIBRARY_THREADS_ENVIRONMENT}")
    endif()
    add_test(NAME ${NAME}.shard${SHARD} COMMAND ${NAME}_tests --gtest_brief=1 ${LEFT_OUT})
    set_tests_properties(${NAME}.shard${SHARD} PROPERTIES LABELS "${LABELS}" ENVIRONMENT "${ENVIRONMENT}")
  endforeach()
endfunction()

# For tests that start ranks by Open MPI's mpirun: as root, too, and more of them than there are processors.
set(TESSERA_MPIRUN_ENVIRONMENT OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
                               OMPI_MCA_hwloc_base_binding_policy=none)

# tessera_mpirun_test(NAME RANKS FILTER): those of distribute_tests, by so many processes whose communicator is `mpi`.
function(tessera_mpirun_test NAME RANKS FILTER)
  add_test(NAME ${NAME} COMMAND "${MPIEXEC_EXECUTABLE}" -n ${RANKS} $<TARGET_FILE:distribute_tests> "--gtest_filter=${FILTER}")
  set_tests_properties(${NAME} PROPERTIES TIMEOUT 300 FAIL_REGULAR_EXPRESSION "Running 0 tests" ENVIRONMENT
    "TESSERA_COMMUNICATOR=mpi;${TESSERA_MPIRUN_ENVIRONMENT};${TESSERA_LIBRARY_THREADS_ENVIRONMENT}")
endfunction()
