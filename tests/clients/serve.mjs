// SPDX-License-Identifier: Apache-2.0
// Starts `hearth serve` for a suite on a free port of the loopback, watches its numbers, stops it.
import { execFileSync, spawn } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import readline from 'node:readline';

const START_MS = 240_000;

export function workModel(name) {
  const work = process.env.HEARTH_WORK ?? path.join(os.homedir(), '.cache', 'hearth');
  const file = path.join(work, `${name}.gguf`);
  if (!fs.existsSync(file)) throw new Error(`${file} is missing; see ./dev model and ./dev synth`);
  return file;
}

export class Server {
  static async start(program, model, ...flags) {
    const server = new Server();
    const args = ['serve', '--model', workModel(model), '--port', '0', '--control-port', '0'];
    server.process = spawn(program, [...args, ...flags], { stdio: ['ignore', 'ignore', 'pipe'] });
    server.log = [];
    server.ended = new Promise((resolve) => server.process.once('exit', resolve));
    await new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error('no server in time')), START_MS);
      readline.createInterface({ input: server.process.stderr }).on('line', (line) => {
        server.log.push(line);
        server.control ??= /control on (\S+)/.exec(line)?.[1];
        const found = /^(.*) at (https?:\/\/[^ ]*:\d+)\/v1/.exec(line);
        if (!found) return;
        [, server.name, server.address] = found;
        clearTimeout(timer);
        resolve();
      });
      server.ended.then((code) => reject(new Error(`it ended with ${code}: ${server.log}`)));
    });
    return server;
  }

  // The value of one series of /metrics.
  async metric(series) {
    const page = await (await fetch(`${this.control}/metrics?names=hearth`)).text();
    const line = page.split('\n').find((each) => each.startsWith(`${series} `));
    return line === undefined ? undefined : Number(line.slice(series.length + 1));
  }

  async stop() {
    this.process.kill('SIGTERM');
    const code = await this.ended;
    if (code !== 0) throw new Error(`the server ended with ${code}: ${this.log.join('\n')}`);
  }
}

// A keys file with one key, and the key.
export function makeKeys(program, folder, ...flags) {
  const file = path.join(folder, 'keys.json');
  const entry = path.join(folder, 'entry');
  const key = execFileSync(program, ['key', 'ada', ...flags], {
    stdio: ['ignore', 'pipe', fs.openSync(entry, 'w')],
  });
  const lines = fs.readFileSync(entry, 'utf8').trim().split('\n');
  fs.writeFileSync(file, JSON.stringify({ keys: [JSON.parse(lines.at(-1))] }));
  return { file, key: key.toString().trim() };
}
