'use strict'

// A worker thread that ends in the way that its data names, while a database is open and busy.

const { parentPort, workerData } = require('node:worker_threads')
const { EskerLevel } = require('../..')
const { fill, wait } = require('./busy')

const db = new EskerLevel(workerData.location, { keepChanges: { bytes: 1 << 20 } })

db.open().then(async function () {
  globalThis.kept = await fill(db)
  if (workerData.ending !== 'itself') await wait(db)
  parentPort.postMessage('filled')
  if (workerData.ending === 'exit') process.exit(2)
  if (workerData.ending === 'throw') throw new Error('planned')
})
