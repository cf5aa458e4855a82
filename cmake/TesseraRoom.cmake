# tessera_room(NAME USES room... LINK target...)
# One folder under src/ is one room: an object library of all its sources. USES names the rooms it may include
# (tools/check_rooms holds the includes against it); LINK names third-party targets.
function(tessera_room NAME)
  cmake_parse_arguments(ROOM "" "" "USES;LINK" ${ARGN})
  file(GLOB ROOM_SOURCES CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/*.cpp")
  add_library(tessera_${NAME} OBJECT ${ROOM_SOURCES})
  target_include_directories(tessera_${NAME} PUBLIC "$<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/include>"
                                             PRIVATE "${CMAKE_SOURCE_DIR}/src")
  foreach(USED IN LISTS ROOM_USES)
    target_link_libraries(tessera_${NAME} PUBLIC tessera_${USED})
  endforeach()
  target_link_libraries(tessera_${NAME} PUBLIC ${ROOM_LINK})
  set_property(GLOBAL APPEND PROPERTY TESSERA_ROOMS tessera_${NAME})
endfunction()

# tessera_plugin(NAME USES room... LINK target...)
# A backend that is loaded at run time: lib/libtessera_NAME.so, all sources of the folder, linked to libtessera.
function(tessera_plugin NAME)
  cmake_parse_arguments(PLUGIN "" "" "USES;LINK" ${ARGN})
  file(GLOB PLUGIN_SOURCES CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/*.cpp")
  add_library(tessera_${NAME} SHARED ${PLUGIN_SOURCES})
  target_include_directories(tessera_${NAME} PUBLIC "$<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/src>")
  target_link_libraries(tessera_${NAME} PUBLIC tessera PRIVATE ${PLUGIN_LINK})
  set_target_properties(tessera_${NAME} PROPERTIES LIBRARY_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/lib")
endfunction()
