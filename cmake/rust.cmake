# The Rust workspace under rust/ as one imported static library, `hearth_rust`. Cargo decides what
# to compile; Ninja only asks it again when a file under rust/ changed. The library is the same in
# every preset: Rust code carries no C++ sanitizer, its own checks are always on.
include_guard(GLOBAL)
find_program(CARGO cargo HINTS $ENV{HOME}/.cargo/bin REQUIRED)

# One for all presets: the library does not differ, and a build costs a minute.
set(rust_target_dir ${CMAKE_SOURCE_DIR}/build/rust)
set(rust_library ${rust_target_dir}/release/libhearth_rust.a)
file(GLOB_RECURSE rust_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/rust/*.rs
     ${CMAKE_SOURCE_DIR}/rust/*.toml ${CMAKE_SOURCE_DIR}/rust/Cargo.lock)
list(FILTER rust_sources EXCLUDE REGEX "/rust/target/")

add_custom_command(
  OUTPUT ${rust_library}
  # -E env: flags meant for C++ must not reach rustc through the environment.
  COMMAND ${CMAKE_COMMAND} -E env --unset=RUSTFLAGS --unset=CARGO_TARGET_DIR
          ${CARGO} build --quiet --release --locked --package hearth_rust
          --manifest-path ${CMAKE_SOURCE_DIR}/rust/Cargo.toml --target-dir ${rust_target_dir}
  COMMAND ${CMAKE_COMMAND} -E touch ${rust_library}
  DEPENDS ${rust_sources}
  COMMENT "Building the Rust library"
  VERBATIM)
add_custom_target(hearth_rust_build DEPENDS ${rust_library})

find_package(Threads REQUIRED)
add_library(hearth_rust STATIC IMPORTED GLOBAL)
set_target_properties(hearth_rust PROPERTIES IMPORTED_LOCATION ${rust_library})
target_link_libraries(hearth_rust INTERFACE Threads::Threads ${CMAKE_DL_LIBS} m)
add_dependencies(hearth_rust hearth_rust_build)
