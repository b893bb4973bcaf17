// SPDX-License-Identifier: Apache-2.0
// The page at / of `hearth serve` in Chromium, against the real server: with a small model, with a script
// for a model, and through a relay that cuts and answers. web_test.mjs HEARTH SCRIPTED_SERVE [all]
import {spawnSync} from 'node:child_process';
import {mkdtempSync, rmSync, writeFileSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {access} from './access.mjs';
import {connection} from './connection.mjs';
import {conversations} from './conversations.mjs';
import {looks} from './looks.mjs';
import {rendering} from './rendering.mjs';
import {launch, relayTo, Runner, serve, serveScript, work} from './rig.mjs';
import {settings} from './settings.mjs';

const [hearth, scriptedServe, which] = process.argv.slice(2);
const folder = mkdtempSync(join(tmpdir(), 'hearth-web-'));
const made = spawnSync(hearth, ['key', 'somebody'], {encoding: 'utf8'});
const key = made.stdout.trim();
const keysFile = join(folder, 'keys.json');
writeFileSync(keysFile, `{"keys": [${made.stderr.trim().split('\n').at(-1)}]}`, {mode: 0o600});

// Babble is enough where only the page is looked at; the scenarios that read what is said are slow ones.
const small = ['--model', join(work, which === 'all' ? 'smollm2.gguf' : 'tiny-oss-o200k.gguf')];
const think = [{channel: 'analysis', text: 'Let me think.'}, {channel: 'final', text: '**Hello** there.'}];
const call = [{channel: 'analysis', text: 'I ask.'}, {channel: 'commentary', to: 'functions.weather', text: '{"city": "Oslo"}'}];
const [browser, model, keyed, scripted] = await Promise.all([
  launch(), serve(hearth, small), serve(hearth, [...small, '--keys', keysFile]),
  serveScript(scriptedServe, think, [call, [{channel: 'final', text: 'Cold in Oslo.'}]]),
]);
const relay = await relayTo(model);
const parts = {browser, model, keyed, key, scripted, relay};
const runner = new Runner(which === 'all');
for (const suite of [conversations, rendering, connection, settings, access, looks]) await suite(runner, parts);
await relay.stop();
await browser.close();
await Promise.all([model.stop(), keyed.stop(), scripted.stop()]);
rmSync(folder, {recursive: true});
runner.finish();
