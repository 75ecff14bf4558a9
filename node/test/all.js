'use strict'

// Runs every file of tests in a process of its own, some at a time since most of them wait for the
// disk, and adds up what they say.

const { spawn } = require('node:child_process')
const fs = require('node:fs')
const path = require('node:path')

const AT_A_TIME = 3
const OTHERS = ['all.js', 'children.js', 'directories.js', 'failures.js']
const isTest = (name) => /\.m?js$/.test(name) && !OTHERS.includes(name)
// How many tests a file has at the least, as tape says nothing of one that `test.skip` leaves out:
// the suite of the version of abstract-level that package.json names. Eight need a newer Node.
const LEAST = { 'conformance.js': Symbol.asyncDispose === undefined ? 1501 : 1509 }
const files = fs.readdirSync(__dirname).filter(isTest).sort()
const left = files.slice()
const sum = { tests: 0, assertions: 0, failed: 0 }

const run = function (file) {
  const child = spawn(process.execPath, [path.join(__dirname, file)])
  let output = ''
  let errors = ''
  child.stdout.on('data', (data) => {
    output += data
  })
  child.stderr.on('data', (data) => {
    errors += data
  })
  return new Promise((resolve) =>
    child.on('close', (code, signal) => resolve({ output, errors, code, signal }))
  )
}

const report = function (file, { output, errors, code, signal }) {
  const count = (pattern) => (output.match(pattern) ?? []).length
  // The last comments are the sums, and not the names of tests.
  const sums = count(/^# (tests|pass|fail|skip|todo) +\d+$/gm) + count(/^# ok$/gm)
  // A test that is left out has a comment for its name, an assertion a mark.
  const omitted = count(/^# (SKIP|TODO) /gm)
  const tests = count(/^# /gm) - sums - omitted
  const assertions = count(/^ok /gm)
  const skipped = omitted + count(/^(not )?ok .*# (SKIP|TODO)/gm)
  // Nothing is left out on purpose: not of the package's tests, nor of abstract-level's.
  const isComplete = skipped === 0 && tests >= (LEAST[file] ?? 1)
  const isPassed =
    code === 0 && isComplete && count(/^not ok /gm) === 0 && /^# ok$/m.test(output)
  const end = isPassed ? 'passed' : `failed (${signal ?? code})`
  console.log(`node: ${file}: ${tests} tests, ${assertions} assertions, ${skipped} skipped: ${end}`)
  if (!isComplete) console.log(`node: ${file}: ${LEAST[file] ?? 1} tests are to run, and all of them`)
  sum.tests += tests
  sum.assertions += assertions
  if (isPassed) return
  sum.failed++
  console.log(
    output
      .split(/^(?=# )/m)
      .filter((part) => /^not ok |^(# |ok .*# )(SKIP|TODO)/m.test(part))
      .join('')
  )
  console.log(errors)
  // One that did not come to its end says where it was.
  if (!/^1\.\.\d+$/m.test(output)) console.log(output.slice(-2000))
}

const worker = async function () {
  for (let file = left.shift(); file !== undefined; file = left.shift())
    report(file, await run(file))
}

Promise.all(Array.from({ length: AT_A_TIME }, worker)).then(function () {
  const { tests, assertions, failed } = sum
  const total = `${tests} tests, ${assertions} assertions in ${files.length} files`
  console.log(`node: ${total}, ${failed} files failed`)
  process.exitCode = failed === 0 ? 0 : 1
})
