# Compiler flags that every target of the project shares.
add_compile_options(-Wall -Wextra -Wno-unused-parameter -Wno-missing-field-initializers)
if(CMAKE_BUILD_TYPE STREQUAL "Release" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # At -O3 g++ 12 sees faults in the standard library's own headers that are none; a newcomer would take them for ours.
  add_compile_options(-Wno-free-nonheap-object -Wno-stringop-overflow -Wno-stringop-overread -Wno-array-bounds -Wno-restrict)
endif()
if(TESSERA_WARNINGS_AS_ERRORS)
  add_compile_options(-Werror)
endif()
if(TESSERA_SANITIZE)
  add_compile_options(-fsanitize=${TESSERA_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${TESSERA_SANITIZE})
  # Seventy programs, each in a fifth of the time that GNU's linker takes.
  find_program(TESSERA_LLD ld.lld)
  if(TESSERA_LLD)
    add_link_options(-fuse-ld=lld)
  endif()
  if(TESSERA_SANITIZE MATCHES "address.*undefined")
    # The address sanitizer reports these too, and they are a quarter of the time to compile.
    add_compile_options(-fno-sanitize=null,vptr,object-size)
    # Another quarter, for pointers that containers give almost everywhere. The kernels of the CPU keep them, and so do
    # the rooms that look at foreign bytes (tessera_check_pointers).
    add_compile_options(-fno-sanitize=alignment,pointer-overflow)
  endif()
endif()
# tessera_check_pointers(TARGET): alignment and overflow of its pointers too, where sanitizers look at such things.
function(tessera_check_pointers TARGET)
  if(TESSERA_SANITIZE MATCHES "address.*undefined")
    target_compile_options(${TARGET} PRIVATE -fsanitize=alignment,pointer-overflow)
  endif()
endfunction()

# tessera_steers(TARGET): it decides what others compute and has no loops over data of its own, so that what would make it
# faster is only longer to compile.
function(tessera_steers TARGET)
  if(TESSERA_SANITIZE)
    target_compile_options(${TARGET} PRIVATE -O0)
  elseif(CMAKE_BUILD_TYPE STREQUAL "Release")
    target_compile_options(${TARGET} PRIVATE -O1)
  endif()
endfunction()

# tessera_cover(TARGET): tells fuzzers which of its blocks an input reaches, and what it compares. As g++ knows it, so that
# tests and fuzzers share one build; tests/fuzz/coverage.cpp gives it to libFuzzer.
function(tessera_cover TARGET)
  if(TESSERA_BUILD_FUZZERS)
    target_compile_options(${TARGET} PRIVATE -fsanitize-coverage=trace-pc,trace-cmp)
  endif()
endfunction()

# g++ looks for what it can free each time that its memory has grown, which is a tenth of its time; where the processors
# have enough, not before a gigabyte, and then each time that it is three times as much.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  cmake_host_system_information(RESULT MEGABYTES QUERY TOTAL_PHYSICAL_MEMORY)
  cmake_host_system_information(RESULT PROCESSORS QUERY NUMBER_OF_LOGICAL_CORES)
  math(EXPR MEGABYTES "${MEGABYTES} / ${PROCESSORS}")
  if(MEGABYTES GREATER_EQUAL 3000)
    add_compile_options(--param=ggc-min-heapsize=1048576 --param=ggc-min-expand=200)
  endif()
endif()

find_program(TESSERA_CCACHE ccache)
if(TESSERA_CCACHE)
  # Paths relative to the checkout, so that every clone finds what any other has compiled. By the contents of all files
  # read, not by what the preprocessor makes of them: to the compiler a precompiled header whose headers differ in a
  # comment is another one, so that a unit which includes one of them again would find everything defined twice. The
  # namespace leaves alone what was kept before this was so.
  set(CMAKE_CXX_COMPILER_LAUNCHER env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1 CCACHE_DEPEND=1
                                      CCACHE_NAMESPACE=tessera-by-contents
                                      CCACHE_SLOPPINESS=pch_defines,time_macros ${TESSERA_CCACHE})
endif()
