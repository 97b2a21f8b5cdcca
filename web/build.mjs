#!/usr/bin/env node
// Build the portal.
//
// usage: node build.mjs --out DIRECTORY
//        node build.mjs --embed DIRECTORY [--depfile FILE]
//        node build.mjs --packages [--all]
//
//   --out DIR       the built files, for skepd --portal-dir
//   --embed DIR     portal_files.c and portal_files.S in DIR: the built files and their compressed copies as a table
//                   for the C build (src/portal/files.h)
//   --depfile FILE  with --embed: what was read, in the syntax of make
//   --packages      only install what the build needs into web/node_modules; with --all also what the tests need
//
// The packages are those of package-lock.json, to the byte. They are installed when that file has changed.
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { brotliCompressSync, constants, gzipSync } from 'node:zlib'

const root = dirname(fileURLToPath(import.meta.url))
const stampPath = join(root, 'node_modules/.skep-packages')

const TYPES = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.json': 'application/json',
}

function fail(text) {
  console.error(`portal: ${text}`)
  process.exit(1)
}

function argumentsRead(words) {
  const options = {}
  for (let i = 0; i < words.length; i++) {
    const name = words[i].replace(/^--/, '')
    if (['packages', 'all', 'locked', 'help'].includes(name)) options[name] = true
    else if (['out', 'embed', 'depfile'].includes(name) && i + 1 < words.length) options[name] = resolve(words[++i])
    else fail(`${words[i]}: no such argument; see --help`)
  }
  return options
}

// ---- packages ----

function stampWanted(all) {
  const hash = createHash('sha256')
  for (const name of ['package.json', 'package-lock.json']) hash.update(readFileSync(join(root, name)))
  return `${hash.digest('hex')} ${all ? 'all' : 'build'}`
}

function packagesAreThere(all) {
  const found = existsSync(stampPath) ? readFileSync(stampPath, 'utf8').trim() : ''
  return found === stampWanted(true) || (!all && found === stampWanted(false))
}

// Several builds may share this folder: one of them installs, the others wait for its lock.
function packagesInstall(all) {
  if (packagesAreThere(all)) return
  const words = ['-x', root, process.execPath, join(root, 'build.mjs'), '--packages', '--locked', ...(all ? ['--all'] : [])]
  if (spawnSync('flock', words, { stdio: 'inherit' }).status !== 0) process.exit(1)
}

function packagesInstallLocked(all) {
  if (packagesAreThere(all)) return
  const words = ['ci', '--ignore-scripts', '--loglevel=error', ...(all ? [] : ['--omit=dev'])]
  const run = spawnSync('npm', words, { cwd: root, encoding: 'utf8' })
  if (run.status !== 0) {
    process.stderr.write(run.stderr || String(run.error))
    fail('npm could not install its packages: is the registry within reach? meson configure -Dportal=disabled builds without the portal')
  }
  writeFileSync(stampPath, stampWanted(all) + '\n')
}

// ---- build ----

async function portalBuild(out) {
  process.env.NODE_ENV = 'production'
  const { build } = await import('vite')
  await build({ root, logLevel: 'warn', build: { outDir: out, emptyOutDir: true } })
}

function filesUnder(folder) {
  return readdirSync(folder, { withFileTypes: true })
    .filter((entry) => !['node_modules', 'dist', 'generated'].includes(entry.name))
    .flatMap((entry) => (entry.isDirectory() ? filesUnder(join(folder, entry.name)) : [join(folder, entry.name)]))
    .sort()
}

const quoted = (text) => JSON.stringify(text)

// A copy that saves less than a twentieth is not worth its place.
function copiesOf(path, bytes) {
  const brotli = brotliCompressSync(bytes, {
    params: { [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length },
  })
  const gzip = gzipSync(bytes, { level: 9 })
  const isWorth = (copy) => copy.length < bytes.length * 0.95
  return [
    { name: 'plain', bytes },
    ...(isWorth(gzip) ? [{ name: 'gzip', bytes: gzip }] : []),
    ...(isWorth(brotli) ? [{ name: 'brotli', bytes: brotli }] : []),
  ]
}

function embed(dist, out) {
  const paths = filesUnder(dist).map((path) => relative(dist, path))
  paths.sort((a, b) => (a < b ? -1 : 1))
  const code = ['/* Made by web/build.mjs. */', '#include "portal/files.h"', '']
  const data = ['/* Made by web/build.mjs. */', '.section .rodata', '']
  const rows = []
  paths.forEach((path, index) => {
    const bytes = readFileSync(join(dist, path))
    const type = TYPES[path.slice(path.lastIndexOf('.'))] ?? fail(`${path}: which type is it?`)
    const tag = createHash('sha256').update(bytes).digest('hex').slice(0, 24)
    const fields = copiesOf(path, bytes).map((copy) => {
      const symbol = `portal_file_${index}_${copy.name}`
      const file = join(out, 'portal', `${index}.${copy.name}`)
      writeFileSync(file, copy.bytes)
      data.push(`.global ${symbol}`, `${symbol}:`, `.incbin ${quoted(file)}`, '')
      code.push(`extern const char ${symbol}[];`)
      return `.${copy.name} = {${symbol}, ${copy.bytes.length}}`
    })
    rows.push(`    {.path = ${quoted(path)}, .type = ${quoted(type)}, .etag = ${quoted(`W/"${tag}"`)}, ${fields.join(', ')}},`)
  })
  code.push('', 'const struct portal_file PORTAL_FILES[] = {', ...rows, '};', `const size_t PORTAL_FILE_COUNT = ${rows.length};`)
  data.push('.section .note.GNU-stack,"",%progbits')
  writeFileSync(join(out, 'portal_files.S'), data.join('\n') + '\n')
  writeFileSync(join(out, 'portal_files.c'), code.join('\n') + '\n')
}

async function main() {
  const options = argumentsRead(process.argv.slice(2))
  if (options.help || (!options.out && !options.embed && !options.packages)) {
    const lines = readFileSync(fileURLToPath(import.meta.url), 'utf8').split('\n').slice(1)
    console.log(lines.slice(0, lines.findIndex((line) => !line.startsWith('//'))).map((line) => line.slice(3)).join('\n'))
    return
  }
  if (options.locked) return packagesInstallLocked(options.all)
  packagesInstall(options.all)
  if (options.packages) return
  const dist = options.out ?? join(options.embed, 'portal-dist')
  await portalBuild(dist)
  if (!options.embed) return
  rmSync(join(options.embed, 'portal'), { recursive: true, force: true })
  mkdirSync(join(options.embed, 'portal'))
  embed(dist, options.embed)
  if (options.depfile) {
    const inputs = filesUnder(root).map((path) => path.replaceAll(' ', '\\ '))
    writeFileSync(options.depfile, `${join(relative(process.cwd(), options.embed), 'portal_files.c')}: ${inputs.join(' ')}\n`)
  }
}

await main()
