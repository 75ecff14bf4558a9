'use strict'

// Directories of tests, in one that goes away with the process.

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')

const root = fs.mkdtempSync(path.join(os.tmpdir(), 'esker-level-'))
let made = 0

process.on('exit', () => fs.rmSync(root, { recursive: true, force: true }))

/** The path of a directory that does not exist yet. */
exports.newLocation = () => path.join(root, String(++made))
