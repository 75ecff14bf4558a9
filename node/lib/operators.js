'use strict'

// Merge operators: the built-in ones by name, and modules of the program, each in a worker thread.

const path = require('node:path')
const { pathToFileURL } = require('node:url')
const { Worker } = require('node:worker_threads')
const { describe } = require('./encoded')

const WORKER = path.join(__dirname, 'operator-worker.js')

/** The operator of an argument: the `name` of a built-in one, or the `url` of a module, or none. */
const operatorOf = function (operator, shown) {
  if (operator === undefined || operator === null) return {}
  if (typeof operator === 'string') return { name: operator }
  if (typeof operator !== 'object')
    throw new TypeError(`${shown} must be a string or an object, received ${describe(operator)}`)

  const { module, ...others } = operator
  const isUrl = module instanceof URL || (typeof module === 'string' && module.startsWith('file:'))

  if (Object.keys(others).length === 0) {
    if (isUrl) return { url: new URL(module).href }
    if (typeof module === 'string' && path.isAbsolute(module))
      return { url: pathToFileURL(module).href }
  }

  throw new TypeError(
    `${shown} must be the name of a built-in merge operator, or an object whose 'module' is an ` +
      'absolute path or a file URL'
  )
}

/** What the worker says first. */
const firstMessage = function (worker) {
  return new Promise((resolve, reject) => {
    worker.once('message', resolve)
    worker.once('error', reject)
    worker.once('exit', () => reject(new Error('The worker thread of the merge operator has ended')))
  })
}

/**
 * The workers of a database. One ends when the engine releases its operator, and all end with the
 * database, at the latest when that is collected as garbage.
 */
class Operators {
  #workers = []

  constructor(database) {
    collected.register(database, this.#workers)
  }

  /**
   * An operator for the native half: `{ name }` of a built-in one, or `{ served }`, whose worker has
   * begun; none for nothing.
   */
  async begin({ name, url }) {
    if (url === undefined) return { name }
    const worker = new Worker(WORKER, { workerData: { url } })
    this.#workers.push(worker)
    worker.once('exit', () => {
      const place = this.#workers.indexOf(worker)
      if (place >= 0) this.#workers.splice(place, 1)
    })
    const { operator: served, error, isTypeError } = await firstMessage(worker)

    if (served === undefined) {
      await worker.terminate()
      throw new (isTypeError ? TypeError : Error)(error)
    }

    worker.removeAllListeners('error')
    worker.on('error', (err) => {
      process.emitWarning(`The merge operator ${served.name} has ended: ${err?.stack ?? err}`)
    })
    // It keeps no process.
    worker.unref()
    return { served }
  }

  async end() {
    await Promise.all(this.#workers.splice(0).map((worker) => worker.terminate()))
  }
}

const collected = new FinalizationRegistry((workers) => {
  for (const worker of workers) worker.terminate()
})

exports.Operators = Operators
exports.operatorOf = operatorOf
