// SPDX-License-Identifier: Apache-2.0
// Which npm packages are inside the built page, as the bundler saw it: for the packages' SBOM and
// licences. Written beside the page's folder, because everything in that folder is served.
import {mkdirSync, readFileSync, writeFileSync} from 'node:fs';
import {dirname, join, resolve} from 'node:path';

const MARK = '/node_modules/';

// Modules that the tools put in: a helper for chunks of Vite's, and Rolldown's run-time.
const OF_TOOLS = [[/^\0vite\//, 'vite'], [/^\0rolldown\//, 'rolldown']];

// '@scope/name' of the innermost package that a module lies in, and that package's folder.
function packageOf(id, root) {
  const tool = OF_TOOLS.find(([pattern]) => pattern.test(id));
  if (tool !== undefined) return {name: tool[1], folder: `${root}${MARK}${tool[1]}`};
  const path = id.split('?')[0].replace(/^\0/, '');
  const at = path.lastIndexOf(MARK);
  if (at < 0) {
    if (id.startsWith('\0')) throw new Error(`${id.slice(1)}: a module of nobody known`);
    return null;
  }
  const words = path.slice(at + MARK.length).split('/');
  const name = words[0].startsWith('@') ? `${words[0]}/${words[1]}` : words[0];
  return {name, folder: path.slice(0, at + MARK.length) + name};
}

// Modules whose code is in a chunk. Style sheets become files of their own, and have no code there.
function modulesOf(bundle) {
  return Object.values(bundle)
    .filter((output) => output.type === 'chunk')
    .flatMap((chunk) => Object.entries(chunk.modules))
    .filter(([id, module]) => module.renderedLength > 0 || /\.css($|\?)/.test(id))
    .map(([id]) => id);
}

export function listPackages(root) {
  let out;
  return {
    name: 'hearth-packages',
    configResolved(config) {
      out = join(dirname(resolve(root, config.build.outDir)), 'page-packages.json');
    },
    generateBundle(_, bundle) {
      const lock = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')).packages;
      const found = new Map();
      for (const each of modulesOf(bundle).map((id) => packageOf(id, root))) {
        if (each !== null) found.set(each.folder, each.name);
      }
      const list = [...found].map(([folder, name]) => {
        const manifest = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
        const locked = lock[folder.slice(folder.indexOf(MARK) + 1)];
        if (locked?.version !== manifest.version) {
          this.error(`${name} ${manifest.version} is not what package-lock.json has`);
        }
        return {name, version: manifest.version, licence: manifest.license,
                integrity: locked.integrity, folder: folder.slice(folder.indexOf(MARK) + 1)};
      });
      list.sort((a, b) => (a.folder < b.folder ? -1 : 1));
      mkdirSync(dirname(out), {recursive: true});
      writeFileSync(out, `${JSON.stringify(list, null, 1)}\n`);
    },
  };
}
