'use strict'

// Programs that run in a process of their own, because of how they end.

const { spawn } = require('node:child_process')
const path = require('node:path')

/** The path of a program. */
exports.program = (name) => path.join(__dirname, 'programs', `${name}.js`)

/** Runs a program to its end: what it printed, and how it ended. */
exports.run = async function (name, args, { flags = [], env = {} } = {}) {
  const child = spawn(process.execPath, [...flags, exports.program(name), ...args], {
    env: { ...process.env, ...env }
  })
  let output = ''
  let errors = ''
  child.stdout.on('data', (data) => {
    output += data
  })
  child.stderr.on('data', (data) => {
    errors += data
  })

  return new Promise((resolve, reject) => {
    child.on('error', reject)
    child.on('close', (code, signal) => resolve({ code, signal, output, errors }))
  })
}
