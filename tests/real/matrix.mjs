// SPDX-License-Identifier: MIT
//
// node matrix.mjs SPILLWAY: each official client with each server, directly
// and through SPILLWAY; the results have to be equal. Then a result of 12 MB:
// it ends the session without spillway, and leaves it alive with it.
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { clients } from './clients.mjs';

const spillway = process.argv[2];
const here = path.dirname(fileURLToPath(import.meta.url));
const work = fs.mkdtempSync(path.join(os.tmpdir(), 'spillway-real-'));
const root = path.join(work, 'root');
fs.mkdirSync(root);
fs.writeFileSync(path.join(root, 'lines.txt'), 'a line of text\n'.repeat(20000));
fs.writeFileSync(path.join(root, 'big.txt'),
  'sixty-three bytes of text and one newline make sixty-four, I say\n'
    .repeat(90000));

const published = (name, args = [], env = {}) => ({
  command: process.execPath,
  args: [path.join(here, 'node_modules/@modelcontextprotocol', name,
    'dist/index.js'), ...args],
  env: { PATH: process.env.PATH, HOME: work, ...env },
});

const servers = {
  everything: {
    server: published('server-everything', ['stdio']),
    calls: [
      ['echo', { message: 'hé 😀 "q" \\ \u2028' }],
      ['get-sum', { a: 1, b: 2 }],
      ['get-tiny-image', {}],
      ['get-structured-content', { location: 'Chicago' }],
      ['get-resource-links', { count: 3 }],
      ['trigger-long-running-operation', { duration: 0.2, steps: 2 }],
      ['no-such-tool', {}],
    ],
  },
  filesystem: {
    server: published('server-filesystem', [root]),
    calls: [
      ['read_text_file', { path: path.join(root, 'lines.txt') }],
      ['list_directory', { path: root }],
      ['read_text_file', { path: '/outside' }],
    ],
  },
  memory: {
    server: published('server-memory', [],
      { MEMORY_FILE_PATH: path.join(work, 'memory.jsonl') }),
    calls: [
      ['create_entities', { entities: [
        { name: 'a', entityType: 't', observations: ['o'] }] }],
      ['read_graph', {}],
      ['delete_entities', { entityNames: ['a'] }],
    ],
  },
  modern: {
    server: {
      command: process.execPath,
      args: [path.join(here, 'modern.mjs')],
      env: { PATH: process.env.PATH, HOME: work },
    },
    calls: [['add', { a: 1, b: 2 }], ['text', { n: 150000 }]],
  },
};

const through = (server, ...options) => ({
  ...server,
  command: spillway,
  args: [...options, '--', server.command, ...server.args],
});

async function results(connect, server, calls) {
  const client = await connect(server);
  try {
    const out = [JSON.stringify(await client.list())];
    for (const [name, args] of calls) {
      out.push(await client.call(name, args).then(JSON.stringify,
        (e) => 'error ' + e.message));
    }
    return out;
  } finally {
    await client.close();
  }
}

async function samePair(connect, { server, calls }) {
  const direct = await results(connect, server, calls);
  const relayed = await results(connect, through(server), calls);
  const odd = direct.findIndex((text, i) => text !== relayed[i]);
  if (odd >= 0) {
    throw new Error(`result ${odd}:\n  direct  ${direct[odd].slice(0, 300)}` +
      `\n  relayed ${relayed[odd]?.slice(0, 300)}`);
  }
}

/** Read big.txt (12 MB as a result); is the session alive after it? */
async function survives(connect, server) {
  const client = await connect(server);
  try {
    await client.call('read_text_file', { path: path.join(root, 'big.txt') })
      .catch(() => {});
    await client.call('list_directory', { path: root });
    return !client.closed();
  } catch {
    return false;
  } finally {
    await client.close().catch(() => {});
  }
}

async function bigResult(connect) {
  const { server } = servers.filesystem;
  if (await survives(connect, server)) {
    throw new Error('a 12 MB result no longer ends a session by itself');
  }
  if (!await survives(connect, through(server))) {
    throw new Error('a 12 MB result ended the session through spillway');
  }
}

/** Results that fit, in part or not at all: every client takes the outcome. */
const sizes = {
  fits: { chars: 400, n: 20 },
  content: { chars: 400, n: 4000 },
  structured: { chars: 40000, n: 20 },
  nothing: { chars: 40000, n: 4000 },
};

const inTime = (promise, what) => Promise.race([promise,
  new Promise((_, no) => {
    setTimeout(() => no(new Error('no answer to ' + what)), 10000).unref();
  })]);

async function cutResults(connect) {
  const client = await connect(through(servers.modern.server,
    '--max-content=2000'));
  try {
    await client.list();
    for (const tool of ['rows-schema', 'rows-plain']) {
      for (const [size, args] of Object.entries(sizes)) {
        const what = `${tool}, ${size}`;
        const r = await inTime(client.call(tool, args), what)
          .catch((e) => { throw new Error(`${what}: ${e.message}`); });
        const text = r.content.map((c) => c.text ?? '').join('');
        const cut = '_meta' in r && 'spillway/cut' in r._meta;
        if (cut !== (size !== 'fits') || text.length > 2000 ||
            (cut && !text.includes('spillway'))) {
          throw new Error(`${what}: ${JSON.stringify(r).slice(0, 300)}`);
        }
      }
    }
    const sum = await inTime(client.call('add', { a: 1, b: 2 }), 'add');
    if (sum.structuredContent.sum !== 3) throw new Error('add');
  } finally {
    await client.close();
  }
}

let bad = 0;
async function test(name, fn) {
  const start = performance.now();
  const error = await fn().then(() => null, (e) => e);
  bad += error ? 1 : 0;
  console.log(`${error ? 'FAIL' : 'PASS'} ${name} ` +
    ((performance.now() - start) / 1000).toFixed(2));
  if (error) console.log(error.message);
}

const word = process.argv[3] ?? '';
for (const [client, connect] of Object.entries(clients)) {
  for (const [name, pair] of Object.entries(servers)) {
    if (`${client}-${name}`.includes(word)) {
      await test(`${client}-${name}`, () => samePair(connect, pair));
    }
  }
  if (`${client}-cut`.includes(word)) {
    await test(`${client}-cut`, () => cutResults(connect));
  }
  if (`${client}-12MB`.includes(word)) {
    await test(`${client}-12MB`, () => bigResult(connect));
  }
}
fs.rmSync(work, { recursive: true, force: true });
process.exit(bad ? 1 : 0);
