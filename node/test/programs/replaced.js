'use strict'

// Sets merge operators of modules, and waits until the workers of those that are not needed have
// ended.

const threads = require('node:worker_threads')
const path = require('node:path')

let running = 0

// As the workers of operators are nobody else's, this is how their ends are seen.
threads.Worker = class extends threads.Worker {
  constructor(...options) {
    super(...options)
    running++
    this.once('exit', () => running--)
  }
}

const { EskerLevel } = require('../..')

const operator = (name) => ({ module: path.join(__dirname, '..', 'operators', name) })
const LONGEST = operator('longest.js')
const SET = operator('set.mjs')

const until = async function (most) {
  while (running > most) await new Promise((resolve) => setImmediate(resolve))
}

const main = async function () {
  const location = process.argv[2]
  const db = new EskerLevel(location, { mergeOperator: SET })
  await db.merge('k', 'a')
  const reader = new EskerLevel(location, { readOnly: true })
  await reader.open()
  const refused = await reader.setMergeOperator(LONGEST).catch((err) => err.code)
  await until(1)
  console.log('refused', refused, await db.get('k'))

  await db.setMergeOperator(SET)
  await until(1)
  await db.merge('k', 'b')
  console.log('the same', await db.get('k'))

  for (let i = 0; i < 10; i++) {
    await db.setMergeOperator(i % 2 === 0 ? LONGEST : SET)
    await db.merge('k', 'c')
    await db.get('k')
  }

  // The present one and the one before.
  await until(2)
  console.log('others', running, await db.get('k'))
  await Promise.all([reader.close(), db.close()])
  await until(0)
  console.log('closed')
}

main()
