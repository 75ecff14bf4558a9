'use strict'

// Compiles the native half, and puts it where `lib/binding.js` looks. The argument is Cargo's
// profile; without one it is `release`.

const { execFileSync } = require('node:child_process')
const fs = require('node:fs')
const path = require('node:path')

const profile = process.argv[2] ?? 'release'
const root = path.join(__dirname, '..')
const cargo = process.env.CARGO ?? 'cargo'
const args = [
  'build',
  '--package',
  'esker-node',
  '--profile',
  profile,
  '--message-format',
  'json-render-diagnostics'
]
const output = execFileSync(cargo, args, {
  cwd: root,
  stdio: ['ignore', 'pipe', 'inherit'],
  maxBuffer: 1 << 28
})
const messages = output
  .toString()
  .split('\n')
  .filter(Boolean)
  .map((line) => JSON.parse(line))
const isLibrary = (message) =>
  message.reason === 'compiler-artifact' && message.target.name === 'esker_node'
const library = messages.find(isLibrary).filenames[0]

// Under another name first: a process that has the old file loaded keeps it.
const built = path.join(root, 'build', 'esker-level.node')
fs.mkdirSync(path.dirname(built), { recursive: true })
fs.copyFileSync(library, `${built}.new`)
fs.renameSync(`${built}.new`, built)
