# Turns the rows of LAYERS into static libraries `hearth_<room>` and test programs `<room>_test`.
# A room is a folder of src/ with all that is below it: every *.cc is source, every *_test.cc goes
# into its test program. Rows of folders inside a room are for the layers gate alone.
# What a room needs beyond that (a library, a generated file) stands in src/<room>/room.cmake.

function(hearth_add_room room allowed)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${room}/*.cc)
  set(tests ${sources})
  list(FILTER sources EXCLUDE REGEX "(_test|/main)\\.cc$")
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  if(NOT sources)
    return()
  endif()
  set(lib hearth_${room})
  add_library(${lib} STATIC ${sources})
  target_include_directories(${lib} PUBLIC ${CMAKE_SOURCE_DIR}/src)
  foreach(other IN LISTS allowed)
    if(TARGET hearth_${other})
      target_link_libraries(${lib} PUBLIC hearth_${other})
    endif()
  endforeach()
  if(EXISTS ${CMAKE_SOURCE_DIR}/src/${room}/room.cmake)
    include(${CMAKE_SOURCE_DIR}/src/${room}/room.cmake)
  endif()
  if(tests AND NOT HEARTH_FUZZ)
    find_package(GTest REQUIRED)
    include(GoogleTest)
    add_executable(${room}_test ${tests})
    target_link_libraries(${room}_test PRIVATE ${lib} hearth_testing GTest::gmock_main)
    target_compile_definitions(${room}_test PRIVATE HEARTH_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
    # What is tested keeps the program's own flags; the tests around it only have to compile fast.
    target_compile_options(${room}_test PRIVATE $<$<CONFIG:Release>:-O1>)
    # One ctest entry per room keeps the list readable and the start-up cost of hundreds of
    # processes out of the fast loop; gtest names the failing case.
    add_test(NAME unit.${room} COMMAND ${room}_test --gtest_brief=1)
    set(labels unit)
    if(room IN_LIST HEARTH_EDGE_ROOMS)
      add_dependencies(units ${room}_test)
      list(APPEND labels edge)
    else()
      add_dependencies(sanitized_units ${room}_test)
      if(NOT room IN_LIST HEARTH_SPEED_ROOMS)
        list(APPEND labels inner)
        set_target_properties(${room}_test PROPERTIES EXCLUDE_FROM_ALL ON)
      endif()
    endif()
    set_tests_properties(unit.${room} PROPERTIES LABELS "${labels}" TIMEOUT 1800)
    if(room STREQUAL "tiers")
      set_tests_properties(unit.${room} PROPERTIES ENVIRONMENT "${HEARTH_FAST_FILES}")
    endif()
  endif()
endfunction()

# For tests that write much and would wait for a disk to have it: their files are in memory, where
# there is enough of it. disk_trial runs on a disk every night.
set(HEARTH_FAST_FILES "")
execute_process(COMMAND df -k --output=avail /dev/shm OUTPUT_VARIABLE free_kib ERROR_QUIET)
string(REGEX MATCH "[0-9]+" free_kib "${free_kib}")
if(free_kib GREATER 1000000)
  set(HEARTH_FAST_FILES "TMPDIR=/dev/shm")
endif()

# CI runs each room's tests once, to build them once: under sanitizers (`inner`), or in the release
# where the room is made of commands and reports that other tests start anyway (`edge`). Rooms whose
# results could depend on optimisation are tested both ways, and text, whose tests also play a million
# streams (tests/harmony).
set(HEARTH_EDGE_ROOMS app bench load report top)
set(HEARTH_SPEED_ROOMS cpu platform sampling tensor text)

function(hearth_add_rooms)
  # What `ctest -L unit` runs, as one target; and what CI runs of it under sanitizers.
  add_custom_target(sanitized_units)
  add_custom_target(units)
  add_dependencies(units sanitized_units)
  # Helpers for tests only: where test data lies, loud skips.
  add_library(hearth_testing INTERFACE)
  target_include_directories(hearth_testing INTERFACE ${CMAKE_SOURCE_DIR}/src
                             ${CMAKE_SOURCE_DIR}/tests/support)
  file(STRINGS ${CMAKE_SOURCE_DIR}/LAYERS rows REGEX "^[a-z]+([ \t]|$)")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/LAYERS)
  set(all_rooms "")
  foreach(row IN LISTS rows)
    string(REGEX REPLACE "#.*" "" row "${row}")
    string(REGEX MATCHALL "[a-z*]+" words "${row}")
    list(POP_FRONT words room)
    if(words STREQUAL "*")
      set(words ${all_rooms})
    endif()
    hearth_add_room(${room} "${words}")
    list(APPEND all_rooms ${room})
  endforeach()
  if(EXISTS ${CMAKE_SOURCE_DIR}/src/app/main.cc)
    add_executable(hearth ${CMAKE_SOURCE_DIR}/src/app/main.cc)
    target_link_libraries(hearth PRIVATE hearth_app)
  endif()
endfunction()
