'use strict'

// Programs that run in a process of their own, because of how they end.

const { spawn } = require('node:child_process')

/**
 * Runs the source of a CommonJS module, in which `EskerLevel` is defined and `process.argv[1]` and
 * so on are `args`. The result has what it printed, and how it ended.
 */
exports.run = async function (source, args = [], flags = [], env = {}) {
  const head = `const { EskerLevel } = require(${JSON.stringify(require.resolve('..'))})\n`
  const child = spawn(process.execPath, [...flags, '-e', head + source, ...args], { env: { ...process.env, ...env } })
  let output = ''
  let errors = ''
  child.stdout.on('data', (data) => { output += data })
  child.stderr.on('data', (data) => { errors += data })

  return new Promise((resolve, reject) => {
    child.on('error', reject)
    child.on('close', (code, signal) => resolve({ code, signal, output, errors }))
  })
}
