# Copies of sources with planted bugs: a source with a patch under tests/mutants/patches is patched into
# the build folder, any other is taken as it is. A patch that no longer fits fails the build.
include_guard(GLOBAL)
find_program(PATCH_PROGRAM patch REQUIRED)

# hearth_mutate_source(OUT source patch place): one source with its patch, at `place`.
function(hearth_mutate_source out source patch place)
  get_filename_component(folder ${place} DIRECTORY)
  add_custom_command(
    OUTPUT ${place}
    COMMAND ${CMAKE_COMMAND} -E make_directory ${folder}
    COMMAND ${CMAKE_COMMAND} -E copy ${source} ${place}
    COMMAND ${PATCH_PROGRAM} --quiet --fuzz=0 --no-backup-if-mismatch ${place} ${patch}
    DEPENDS ${source} ${patch})
  set(${out} ${place} PARENT_SCOPE)
endfunction()

# hearth_mutated_sources(OUT room...): the sources of the rooms, without their tests.
function(hearth_mutated_sources out)
  set(result "")
  foreach(room IN LISTS ARGN)
    file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${room}/*.cc)
    list(FILTER sources EXCLUDE REGEX "_test\\.cc$")
    foreach(source IN LISTS sources)
      get_filename_component(name ${source} NAME)
      set(patch ${CMAKE_SOURCE_DIR}/tests/mutants/patches/${room}/${name}.patch)
      if(NOT EXISTS ${patch})
        list(APPEND result ${source})
        continue()
      endif()
      hearth_mutate_source(mutated ${source} ${patch}
                           ${CMAKE_CURRENT_BINARY_DIR}/mutants/${room}/${name})
      list(APPEND result ${mutated})
    endforeach()
  endforeach()
  set(${out} ${result} PARENT_SCOPE)
endfunction()
