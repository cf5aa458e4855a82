# Installs the build tree BUILD, moves the installation, and builds and runs tests/consumer against it in WORK.
function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE RESULT)
  if(NOT RESULT EQUAL 0)
    list(JOIN ARGN " " COMMAND_LINE)
    message(FATAL_ERROR "failed (${RESULT}): ${COMMAND_LINE}")
  endif()
endfunction()

file(REMOVE_RECURSE "${WORK}")
run("${CMAKE_COMMAND}" --install "${BUILD}" --prefix "${WORK}/installed")
file(RENAME "${WORK}/installed" "${WORK}/moved")
run("${CMAKE_COMMAND}" -S "${CMAKE_CURRENT_LIST_DIR}/consumer" -B "${WORK}/build" -G "${GENERATOR}"
    "-DCMAKE_CXX_COMPILER=${COMPILER}" "-DCMAKE_PREFIX_PATH=${WORK}/moved")
run("${CMAKE_COMMAND}" --build "${WORK}/build")
run("${WORK}/build/consumer" "${DEVICE}")
run("${WORK}/build/own_task" "${DEVICE}")
run("${WORK}/moved/bin/tessera" doctor)
