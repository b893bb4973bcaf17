// SPDX-License-Identifier: Apache-2.0
#include "templates/program.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/resource.h>

#include <chrono>
#include <thread>

namespace hearth {
namespace {

std::string Shown(std::string_view source, std::string_view context = "{}") {
  auto program = TemplateProgram::Compile(source);
  if (!program.ok()) return "refused: " + program.status().message();
  auto text = program->Run(context);
  return text.ok() ? *text : "failed: " + text.status().message();
}

TEST(Program, RendersVariablesOfEveryKind) {
  EXPECT_EQ(Shown("Hello {{ name }}!", R"({"name": "hearth"})"), "Hello hearth!");
  EXPECT_EQ(
      Shown("{{ a }} {{ b }} {{ c }} {{ d }} {{ e }} {{ f }} {{ nothing }}",
            R"({"a": null, "b": true, "c": 1e16, "d": -3, "e": [1, "x", 2.5], "f": {"k": null}})"),
      "None True 1e+16 -3 [1, 'x', 2.5] {'k': None} ");
}

TEST(Program, RefusesWhatDoesNotParse) {
  EXPECT_EQ(TemplateProgram::Compile("{% if %}").status().code(), Code::kInvalid);
  EXPECT_EQ(TemplateProgram::Compile("\xff").status().code(), Code::kInvalid);
  EXPECT_EQ(TemplateProgram::Compile(std::string(300 << 10, ' ')).status().code(),
            Code::kExhausted);
  EXPECT_EQ(Shown("x", "{"),
            "failed: chat template: EOF while parsing an object at line 1 column 1");
}

TEST(Program, RefusesWhatChatTemplatesMayNotDo) {
  for (const char* source :
       {"{% include 'x' %}", "{% import 'x' as y %}", "{% from 'x' import y %}",
        "{% extends 'x' %}", "{% block b %}{% endblock %}",
        "{% autoescape true %}{% endautoescape %}",
        "{% for x in y recursive %}{{ loop(x) }}{% endfor %}"}) {
    EXPECT_EQ(TemplateProgram::Compile(source).status().code(), Code::kInvalid) << source;
  }
}

TEST(Program, LinesAndSpacesAsTransformersSetsThem) {
  // trim_blocks, lstrip_blocks, no trailing newline kept, generation as a plain scope.
  EXPECT_EQ(Shown("a\n  {% if true %}\n b\n  {% endif %}\nc\n"), "a\n b\nc");
  EXPECT_EQ(Shown("{%- generation -%} x {%- endgeneration %}y"), "xy");
  EXPECT_EQ(Shown("{% for i in range(9) %}{% if i == 1 %}{% continue %}{% endif %}{{ i }}"
                  "{% if i == 3 %}{% break %}{% endif %}{% endfor %}"),
            "023");
  EXPECT_EQ(Shown("{% set ns = namespace(x=1) %}{% for i in [2, 3] %}{% set ns.x = ns.x * i %}"
                  "{% endfor %}{{ ns.x }}"),
            "6");
}

// Each would run for hours or fill the memory if nothing stopped it.
const char* const kHostile[] = {
    "{% for a in range(99999) %}{% for b in range(99999) %}{{ a }}{% endfor %}{% endfor %}",
    "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
    "{{ range(10 ** 12) | length }}",
    "{{ 'x' * 10 ** 12 }}",
    "{{ 10 ** 11 * 'x' }}",
    "{{ [0] * 10 ** 10 }}",
    "{% set n = namespace(x='x') %}{% for i in range(99) %}{% set n.x = n.x + n.x %}{% endfor %}",
    "{% set n = namespace(x='x') %}{% for i in range(99) %}{% set n.x = n.x ~ n.x %}{% endfor %}",
    "{% set n = namespace(x=[1]) %}{% for i in range(99) %}{% set n.x = n.x + n.x %}{% endfor %}",
    "{% set n = namespace(x='x') %}{% for i in range(99) %}{% set n.x = [n.x, n.x] | join %}"
    "{% endfor %}",
    "{% set n = namespace(x='x') %}{% for i in range(99) %}"
    "{% set n.x = n.x | replace('x', 'xxxxxxxxxx') %}{% endfor %}",
    "{% set n = namespace(x='x') %}{% for i in range(99) %}{% set t %}{{ n.x }}{{ n.x }}"
    "{% endset %}{% set n.x = t %}{% endfor %}",
    "{% set n = namespace(x=[]) %}{% for i in range(99999) %}{% set n.x = [n.x] %}{% endfor %}",
    "{% set n = namespace(x={}) %}{% for i in range(99999) %}{% set n.x = {'a': n.x} %}{% endfor "
    "%}",
    "{% set n = namespace() %}{% set n.x = n %}{{ n.x | tojson }}",
    "{% set n = namespace(x=1) %}{% for i in range(99999) %}{% set n.x = namespace(p=n.x) %}"
    "{% endfor %}",
    "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
    "{% macro f(x) %}{{ g(x) }}{% endmacro %}{% macro g(x) %}{{ f(x) ~ f(x) }}{% endmacro %}"
    "{{ f(1) }}",
    "{% macro f() %}{{ caller() }}{% endmacro %}{% macro g() %}{% call f() %}{{ g() }}{% endcall %}"
    "{% endmacro %}{{ g() }}",
    "{{ 'x' | indent(10 ** 12, true) }}",
    "{{ ('x\n' * 9999) | indent(99999) }}",
    "{{ [[[]]] | tojson(indent=10 ** 12) }}",
    "{{ 'x'.ljust(10 ** 12) }}{{ 'x'.center(10 ** 12) }}",
    "{{ 'x'.center(10 ** 12) }}",
    "{% set s = 'ab' * 99999 %}{% for i in range(99999) %}{{ s in s }}{% endfor %}",
    "{% set s = 'a' * 999999 %}{% for i in range(99999) %}{% set t = s[::-1] %}{% endfor %}",
    "{% set s = 'a' * 999999 %}{% for i in range(99999) %}{% for c in s %}{% break %}{% endfor %}"
    "{% endfor %}",
    "{% set s = range(99999) | list %}{% for i in range(99999) %}{{ s | sort | length }}"
    "{% endfor %}",
    "{% set s = range(99999) | list %}{{ s | unique | list | length }}",
    "{% set s = range(99999) | list %}{% for i in s %}{{ i in s }}{% endfor %}",
    "{% set s = 'a ' * 99999 %}{% for i in range(9999) %}{{ s.split() | length }}{% endfor %}",
    "{% for i in range(99999) %}{{ 'yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy' * "
    "99 }}"
    "{% endfor %}",
};

TEST(Program, HostileTemplatesEndWithinTheirLimits) {
  rusage before = {}, after = {};
  getrusage(RUSAGE_SELF, &before);
  for (const char* source : kHostile) {
    const auto start = std::chrono::steady_clock::now();
    auto program = TemplateProgram::Compile(source);
    const Status status = program.ok() ? program->Run("{}").status() : program.status();
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    EXPECT_EQ(status.code(), Code::kExhausted) << source << ": " << status.message();
    EXPECT_LT(took.count(), 5.0) << source;  // 0.1 s and less; sanitizers and busy machines
  }
  getrusage(RUSAGE_SELF, &after);
#ifdef __SANITIZE_ADDRESS__
  const long allowed_kib = 1 << 20;  // freed memory is kept for a while to find its later use
#else
  const long allowed_kib = 256 << 10;
#endif
  EXPECT_LT(after.ru_maxrss - before.ru_maxrss, allowed_kib);
}

std::string Repeat(std::string_view part, int times) {
  std::string out;
  for (int i = 0; i < times; ++i) out += part;
  return out;
}

struct SmallStackRun {
  std::string_view source;
  Status status;
  // 1 MiB: the least that threads get where anyone still runs servers.
  static void* Compile(void* self) {
    auto* run = static_cast<SmallStackRun*>(self);
    auto program = TemplateProgram::Compile(run->source);
    run->status = program.ok() ? program->Run("{}").status() : program.status();
    return nullptr;
  }
  void Start() {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    ASSERT_EQ(pthread_attr_setstacksize(&attributes, size_t{1} << 20), 0);
    pthread_t thread = {};
    ASSERT_EQ(pthread_create(&thread, &attributes, Compile, this), 0);
    pthread_join(thread, nullptr);
  }
};

// Shapes on which a recursive reader runs out of stack.
TEST(Program, DeepTemplatesAreRefusedOnASmallStack) {
  const std::vector<std::string> sources = {
      "{{ x" + Repeat(" + x", 60000) + " }}",
      "{{ x" + Repeat(".x", 100000) + " }}",
      "{{ x" + Repeat("|e", 100000) + " }}",
      "{{ x" + Repeat("[0]", 80000) + " }}",
      "{{ " + Repeat("(", 100000) + " }}",
      "{{ " + Repeat("[", 100000) + " }}",
      "{{ " + Repeat("not ", 60000) + "x }}",
      "{{ " + Repeat("-", 100000) + "x }}",
      "{{ x" + Repeat(" if x else x", 20000) + " }}",
      "{{ x" + Repeat(" ~ x", 60000) + " }}",
      "{{ x" + Repeat(" and x", 40000) + " }}",
      "{% if x %}" + Repeat("{% elif x %}", 20000) + "{% endif %}",
      Repeat("{% if x %}", 25000),
      Repeat("{% for x in y %}", 15000),
      "{% if x %}" + Repeat("{% else %}{% if x %}", 12000),
  };
  for (const std::string& source : sources) {
    SmallStackRun run{source, {}};
    run.Start();
    EXPECT_EQ(run.status.code(), Code::kInvalid) << source.substr(0, 40);
  }
  SmallStackRun endless{"{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", {}};
  endless.Start();
  EXPECT_EQ(endless.status.code(), Code::kExhausted) << endless.status.message();
  // The deepest that is let through must also fit.
  const std::string lists = Repeat("[", 60) + Repeat("]", 60);
  for (const std::string& source : std::vector<std::string>{
           "{{ 1" + Repeat(" + 1", 500) + " }}", "{{ " + lists + " | tojson }}",
           "{% set n = namespace(x=1) %}{% for i in range(95) %}{% set n.x = [n.x] %}{% endfor %}"
           "{{ n.x }}{{ n.x | tojson }}{{ n.x == n.x }}",
           "{% if 0 %}" + Repeat("{% elif 0 %}", 255) + "{% endif %}",
           ("{% macro f(n) %}{% if n > 0 %}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(30) }}")}) {
    SmallStackRun run{source, {}};
    run.Start();
    EXPECT_TRUE(run.status.ok()) << source.substr(0, 40) << run.status.message();
  }
}

TEST(Program, IsSafeToShareBetweenThreads) {
  auto program = TemplateProgram::Compile("{% for i in range(n) %}{{ i }},{% endfor %}");
  ASSERT_TRUE(program.ok());
  std::vector<std::thread> threads;
  std::vector<int> wrong(4, 0);
  for (size_t t = 0; t < wrong.size(); ++t) {
    threads.emplace_back([&, t] {
      for (int round = 0; round < 200; ++round) {
        auto text = program->Run("{\"n\": " + std::to_string(t + 1) + "}");
        wrong[t] += !text.ok() || text->size() != 2 * (t + 1);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, std::vector<int>(4, 0));
}

}  // namespace
}  // namespace hearth
