// SPDX-License-Identifier: Apache-2.0
const assert = require('node:assert');
const { execFileSync, fork } = require('node:child_process');
const crypto = require('node:crypto');
const fs = require('node:fs');
const net = require('node:net');
const os = require('node:os');
const { test } = require('node:test');
const { Worker } = require('node:worker_threads');
const zlib = require('node:zlib');

test('the package works, and its install script ran', () => {
  assert.strictEqual(require('greeting').greet('you'), 'hello, you');
  assert.strictEqual(fs.readFileSync('node_modules/greeting/installed', 'utf8'), 'yes');
  assert.strictEqual(execFileSync('node_modules/.bin/greet', ['all'], { encoding: 'utf8' }), 'hello, all\n');
});

test('a megabyte over a socket', async () => {
  const server = net.createServer((socket) => socket.pipe(socket)).listen(0, 'localhost');
  await new Promise((done) => server.once('listening', done));
  const data = crypto.randomBytes(1 << 20);
  const socket = net.connect(server.address().port, 'localhost');
  socket.end(data);
  const parts = [];
  for await (const part of socket) parts.push(part);
  server.close();
  assert.ok(Buffer.concat(parts).equals(data));
});

test('a worker and a forked process answer', async () => {
  const worker = new Worker("require('node:worker_threads').parentPort.postMessage(6 * 7)", { eval: true });
  assert.strictEqual(await new Promise((done) => worker.once('message', done)), 42);
  fs.writeFileSync('child.js', 'process.send(process.pid)');
  const child = fork('child.js');
  assert.strictEqual(await new Promise((done) => child.once('message', done)), child.pid);
});

test('files are written, packed and watched', async () => {
  const folder = fs.mkdtempSync(`${os.tmpdir()}/app-`);
  const seen = new Promise((done) => { const w = fs.watch(folder, (_, name) => { w.close(); done(name); }); });
  await fs.promises.writeFile(`${folder}/file`, zlib.gzipSync('packed'));
  assert.strictEqual(zlib.gunzipSync(fs.readFileSync(`${folder}/file`)).toString(), 'packed');
  assert.strictEqual(await seen, 'file');
});
