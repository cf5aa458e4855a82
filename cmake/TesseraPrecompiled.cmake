# Half of what a small unit takes to compile is the front end reading the same headers, so those are compiled once for each
# set of flags: a precompiled header is taken only by units whose flags are those it was made with.
option(TESSERA_PRECOMPILED_HEADERS "Compile the headers that most units include once" ON)

set(TESSERA_STANDARD_HEADERS
    <algorithm> <cmath> <cstdint> <filesystem> <functional> <limits> <map> <memory> <optional> <set> <span> <string>
    <string_view> <unordered_map> <unordered_set> <vector> <fmt/format.h>)
set(TESSERA_GRAPH_HEADERS ${TESSERA_STANDARD_HEADERS} <tessera/graph/operator.h>)

# tessera_precompile(TARGET header...): for this target alone.
function(tessera_precompile TARGET)
  if(TESSERA_PRECOMPILED_HEADERS)
    target_precompile_headers(${TARGET} PRIVATE ${ARGN})
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
      # Lets ccache see which precompiled header a unit was compiled with.
      target_compile_options(${TARGET} PRIVATE -fpch-preprocess)
    endif()
  endif()
endfunction()

# tessera_precompile_from(TARGET PROVIDER): those of another target with the same flags.
function(tessera_precompile_from TARGET PROVIDER)
  if(TESSERA_PRECOMPILED_HEADERS)
    target_precompile_headers(${TARGET} REUSE_FROM ${PROVIDER})
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
      target_compile_options(${TARGET} PRIVATE -fpch-preprocess)
    endif()
  endif()
endfunction()

# tessera_precompiled(PROVIDER HEADERS header... LINK target... [EXECUTABLE]): a target that only holds precompiled headers, for
# libraries, or for executables, whose code is not position-independent in the same way.
function(tessera_precompiled PROVIDER)
  cmake_parse_arguments(OWN "EXECUTABLE" "" "HEADERS;LINK" ${ARGN})
  if(NOT TESSERA_PRECOMPILED_HEADERS)
    return()
  endif()
  file(CONFIGURE OUTPUT "${PROVIDER}.cpp" CONTENT "// Holds a precompiled header.\n")
  add_library(${PROVIDER} OBJECT "${CMAKE_CURRENT_BINARY_DIR}/${PROVIDER}.cpp")
  target_include_directories(${PROVIDER} PRIVATE "${CMAKE_SOURCE_DIR}/include")
  target_link_libraries(${PROVIDER} PRIVATE ${OWN_LINK})
  if(OWN_EXECUTABLE)
    set_target_properties(${PROVIDER} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
    target_compile_options(${PROVIDER} PRIVATE -fPIE)
  endif()
  tessera_precompile(${PROVIDER} ${OWN_HEADERS})
endfunction()
