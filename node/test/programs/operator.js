'use strict'

// Ends, in the way of its argument, while a merge operator of a module is at work.

const threads = require('node:worker_threads')
const path = require('node:path')

const ended = []

// As the worker of the operator is nobody else's, this is how its end is seen.
threads.Worker = class extends threads.Worker {
  constructor(...options) {
    super(...options)
    this.once('exit', () => ended.push(this))
  }
}

const { EskerLevel } = require('../..')

const [location, how] = process.argv.slice(2)
const mergeOperator = { module: path.join(__dirname, '..', 'operators', 'slow.js') }

const forget = async function () {
  const db = new EskerLevel(location, { mergeOperator })
  await db.merge('k', 'v')
  if ((await db.get('k')) !== 'v') throw new Error('no merge')
}

const main = async function () {
  if (how === 'forget') {
    await forget()
    console.log('begun')
    while (ended.length === 0) {
      globalThis.gc()
      await new Promise((resolve) => setImmediate(resolve))
    }
    console.log('ended')
    return
  }

  const db = new EskerLevel(location, { mergeOperator })
  await db.merge('k', how === 'end' ? 'v' : 'forever')
  if (how === 'end') {
    // Nothing is under way: the process ends with the database open.
    await db.get('k')
    console.log('begun')
    return
  }
  db.get('k').catch(() => {})
  console.log('begun')
  // When the operator is called, which nothing tells.
  await db.get('other')
  if (how === 'throw') throw new Error('on purpose')
  process.exit(0)
}

main()
