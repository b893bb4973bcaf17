// SPDX-License-Identifier: Apache-2.0
// Runs the named cases of one client against hearth serve:
//   node run.mjs SUITE HEARTH TYPES.json [WORD]   those whose name has WORD in it
//   node run.mjs --list SUITE...                  the names alone
import assert from 'node:assert/strict';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { Server, makeKeys } from './serve.mjs';
import { Wire, loadChecks } from './wire.mjs';

// Where a case runs: both models, one of them, or a server that wants a key, whose key may be one
// that can ask once a minute.
const KEY_FLAGS = { keyed: [], limited: ['--requests-per-minute', '1'] };
const HOUSES = {
  smollm2: ['smollm2', '--context', '2048'],
  tiny: ['tiny-oss-o200k', '--context', '8192'],
  keyed: ['tiny-oss-o200k'],
  limited: ['tiny-oss-o200k'],
};

async function casesOf(suite) {
  const { cases } = await import(`./${suite}.mjs`);
  const all = [];
  for (const [name, where, run] of cases) {
    for (const house of where === 'both' ? ['smollm2', 'tiny'] : [where]) {
      assert.ok(HOUSES[house], `${name}: no house ${house}`);
      all.push({ name: `${suite}.${name} [${house}]`, house, run });
    }
  }
  assert.equal(new Set(all.map((each) => each.name)).size, all.length, 'a name stands twice');
  return all;
}

async function list(suites) {
  for (const suite of suites) {
    for (const { name } of await casesOf(suite)) console.log(name);
  }
}

async function runHouse(house, cases, program, checks) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'hearth-clients-'));
  const [model, ...flags] = HOUSES[house];
  let key = 'none';
  if (KEY_FLAGS[house]) {
    const made = makeKeys(program, folder, ...KEY_FLAGS[house]);
    key = made.key;
    flags.push('--keys', made.file);
  }
  const server = await Server.start(program, model, ...flags);
  const failed = [];
  try {
    for (const { name, run } of cases) {
      const wire = new Wire(checks);
      const began = performance.now();
      try {
        await run({ server, wire, key, model: server.name, house });
        await wire.settle();
        console.log(`ok      ${name} (${Math.round(performance.now() - began)} ms)`);
      } catch (error) {
        failed.push(name);
        console.log(`FAILED  ${name}\n${error.stack}`);
      }
    }
  } finally {
    await server.stop();
    fs.rmSync(folder, { recursive: true });
  }
  return failed;
}

async function main(suite, program, typesPath, word = '') {
  const all = (await casesOf(suite)).filter((each) => each.name.includes(word));
  assert.ok(all.length > 0, 'no such case');
  const checks = loadChecks(typesPath);
  const failed = [];
  for (const house of Object.keys(HOUSES)) {
    const cases = all.filter((each) => each.house === house);
    if (cases.length > 0) failed.push(...(await runHouse(house, cases, program, checks)));
  }
  console.log(`${all.length - failed.length} of ${all.length} cases of ${suite} are right`);
  process.exitCode = failed.length > 0 ? 1 : 0;
}

const [first, ...rest] = process.argv.slice(2);
await (first === '--list' ? list(rest) : main(first, ...rest));
