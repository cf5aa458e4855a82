# Most of what a small unit takes to compile goes into headers, templates and the functions of classes that every unit
# compiles again, so a build from nothing is quicker when several sources are compiled as one. A change then compiles them
# all: for builds that are made once, such as those of CI.
option(TESSERA_UNITY_BUILD "Compile several sources as one" OFF)

set(TESSERA_UNITY_SIZE 8)

# tessera_unite(TARGET): its sources in groups that share no name (tools/unity_groups).
function(tessera_unite TARGET)
  if(NOT TESSERA_UNITY_BUILD)
    return()
  endif()
  get_target_property(SOURCES ${TARGET} SOURCES)
  execute_process(COMMAND python3 "${CMAKE_SOURCE_DIR}/tools/unity_groups" ${TESSERA_UNITY_SIZE} ${SOURCES}
                  WORKING_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}" OUTPUT_VARIABLE GROUPS
                  OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  string(REPLACE "\n" ";" GROUPS "${GROUPS}")
  set(NUMBER 0)
  foreach(GROUP IN LISTS GROUPS)
    string(REPLACE "\t" ";" GROUP "${GROUP}")
    set_source_files_properties(${GROUP} PROPERTIES UNITY_GROUP ${NUMBER})
    math(EXPR NUMBER "${NUMBER} + 1")
  endforeach()
  # The name of every registration becomes another one in each source.
  set_target_properties(${TARGET} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP UNITY_BUILD_UNIQUE_ID kRegistration)
endfunction()
