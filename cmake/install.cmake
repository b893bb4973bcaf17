# What `cmake --install` puts where, and the program that packages carry to other systems. The man
# pages and completions are written by the program itself while installing.
include(GNUInstallDirs)
set(documents ${CMAKE_BINARY_DIR}/documents)

install(TARGETS hearth RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(CODE "
  set(documents \"${documents}\")
  set(hearth \"$<TARGET_FILE:hearth>\")
  file(REMOVE_RECURSE \"\${documents}\")
  file(MAKE_DIRECTORY \"\${documents}\")
  execute_process(COMMAND \"\${hearth}\" docs man \"\${documents}/man1\" COMMAND_ERROR_IS_FATAL ANY)
  foreach(shell bash zsh fish)
    execute_process(COMMAND \"\${hearth}\" docs completions \${shell}
                    OUTPUT_FILE \"\${documents}/hearth.\${shell}\" COMMAND_ERROR_IS_FATAL ANY)
  endforeach()
  set(HEARTH_BIN \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_BINDIR}/hearth\")
  configure_file(\"${CMAKE_SOURCE_DIR}/packaging/hearth.service.in\" \"\${documents}/hearth.service\"
                 @ONLY)
")
install(DIRECTORY ${documents}/man1 DESTINATION ${CMAKE_INSTALL_MANDIR})
install(FILES ${documents}/hearth.bash RENAME hearth
        DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
install(FILES ${documents}/hearth.zsh RENAME _hearth
        DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions)
install(FILES ${documents}/hearth.fish
        DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
# Not in lib/x86_64-linux-gnu: systemd looks in these.
install(FILES ${documents}/hearth.service DESTINATION lib/systemd/system)
install(FILES packaging/hearth.sysusers RENAME hearth.conf DESTINATION lib/sysusers.d)
install(FILES packaging/hearth.toml LICENSE README.md CHANGELOG.md
        DESTINATION ${CMAKE_INSTALL_DOCDIR})
file(GLOB pages CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/docs/*.md)
install(FILES ${pages} DESTINATION ${CMAKE_INSTALL_DOCDIR}/docs)

# The same objects for systems that are not this one: the libraries that come as archives inside,
# the others looked for beside the program (packaging/bundle.py puts them there). RPATH, not RUNPATH:
# it also counts for the libraries that those libraries need.
add_executable(hearth_portable src/app/main.cc)
target_link_libraries(hearth_portable PRIVATE hearth_app)
set_target_properties(hearth_portable PROPERTIES OUTPUT_NAME hearth
                      RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/portable
                      BUILD_RPATH "$ORIGIN/../lib/hearth")
target_link_options(hearth_portable PRIVATE LINKER:--as-needed,--disable-new-dtags)
# Addresses of functions are looked up at the start and then read-only.
foreach(program hearth hearth_portable)
  target_link_options(${program} PRIVATE LINKER:-z,relro,-z,now)
endforeach()
foreach(archive boost_json boost_container sqlite3)
  find_library(HEARTH_ARCHIVE_${archive} lib${archive}.a)
  if(HEARTH_ARCHIVE_${archive})
    # Whole, because it stands before the libraries that need it; the shared one behind them is then
    # not needed, and left out.
    target_link_options(hearth_portable PRIVATE
      "SHELL:-Wl,--whole-archive ${HEARTH_ARCHIVE_${archive}} -Wl,--no-whole-archive")
  endif()
endforeach()
