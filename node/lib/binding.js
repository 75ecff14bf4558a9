'use strict'

const path = require('node:path')

const file = path.join(__dirname, '..', 'build', 'esker-level.node')

try {
  module.exports = require(file)
} catch (cause) {
  throw new Error(
    `Cannot load ${file}; build it with 'npm run build' in the directory of esker-level`,
    { cause }
  )
}
