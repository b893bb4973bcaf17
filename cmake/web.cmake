# The web page under web/, built by Vite and written into one C++ file, `web_page`. Like the Rust
# library it is the same in every preset, so all of them share build/web. Whether node and the page's
# packages are there is found out when it is built: without them the file holds no page, and the
# program says so (`hearth --version`, GET /).
include_guard(GLOBAL)
set(web_page ${CMAKE_SOURCE_DIR}/build/web/page_files.cc)
file(GLOB_RECURSE web_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/web/src/*)

add_custom_command(
  OUTPUT ${web_page}
  COMMAND ${CMAKE_SOURCE_DIR}/web/build.sh ${web_page}
  DEPENDS ${web_sources} ${CMAKE_SOURCE_DIR}/web/build.sh ${CMAKE_SOURCE_DIR}/web/embed.mjs
          ${CMAKE_SOURCE_DIR}/web/index.html ${CMAKE_SOURCE_DIR}/web/vite.config.mjs
          ${CMAKE_SOURCE_DIR}/web/packages.mjs
          ${CMAKE_SOURCE_DIR}/web/package-lock.json
  COMMENT "Building the web page"
  VERBATIM)
