#!/usr/bin/env node
// Check the portal without a browser: its types against docs/openapi.yaml, and its unit tests.
import { spawnSync } from 'node:child_process'
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = dirname(fileURLToPath(import.meta.url))

function run(...words) {
  const done = spawnSync(words[0], words.slice(1), { cwd: root, stdio: 'inherit' })
  if (done.status !== 0) process.exit(done.status ?? 1)
}

run(process.execPath, 'build.mjs', '--packages', '--all')
run('npm', 'run', '--silent', 'check')
run('npm', 'run', '--silent', 'test')
