'use strict'

// Runs in a worker thread: serves the merge operator of a module of the program.

const { types } = require('node:util')
const { parentPort, workerData } = require('node:worker_threads')
const binding = require('./binding')

const [FULL_MERGE, PARTIAL_MERGE] = [0, 1]

// The number of no call: there will be none any more.
const NO_CALL = 0

const load = async function () {
  const module = await import(workerData.url)
  // A CommonJS module is the default, also where its exports were not seen.
  const operator = typeof module.fullMerge === 'function' ? module : (module.default ?? module)
  const { name, fullMerge, partialMerge, checkOperand } = operator

  if (typeof name !== 'string' || name === '' || typeof fullMerge !== 'function')
    throw new TypeError(`${workerData.url} must export a 'name' and a function 'fullMerge'`)
  for (const [key, value] of Object.entries({ partialMerge, checkOperand })) {
    if (value !== undefined && typeof value !== 'function')
      throw new TypeError(`What ${workerData.url} exports as '${key}' must be a function`)
  }

  const answer = function ({ what, key, existing, operands }) {
    if (what === FULL_MERGE) return fullMerge.call(operator, key, existing ?? undefined, operands)
    if (what === PARTIAL_MERGE) return partialMerge.call(operator, key, operands[0], operands[1])
    const checked = checkOperand.call(operator, operands[0])
    if (checked !== undefined) throw new TypeError('checkOperand must return nothing, or throw')
  }

  const serve = function (number) {
    const call = server.call(number)
    if (!call) return

    const value = answer(call) ?? undefined
    if (value !== undefined && typeof value !== 'string' && !types.isUint8Array(value))
      throw new TypeError('A merge operator must return a string, a Uint8Array, or nothing')

    server.answer(number, undefined, value)
  }

  // The engine waits for the answer to each call, in a thread that holds locks: there is one, or
  // the worker ends.
  const server = new binding.OperatorServer((number) => {
    if (number === NO_CALL) process.exit()

    try {
      serve(number)
    } catch (err) {
      try {
        server.answer(number, messageOf(err))
      } catch {
        process.exit(1)
      }
    }
  })

  return {
    serving: server.number,
    name,
    hasPartialMerge: partialMerge !== undefined,
    hasCheckOperand: checkOperand !== undefined
  }
}

/** Anything can be thrown, and what makes a text of it may throw again. */
const messageOf = function (err) {
  try {
    return String(err)
  } catch {
    return 'what was thrown has no text'
  }
}

load().then(
  (operator) => parentPort.postMessage({ operator }),
  (err) => parentPort.postMessage({ error: messageOf(err), isTypeError: err instanceof TypeError })
)
