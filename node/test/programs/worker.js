'use strict'

// A worker thread that ends in the way that its data names, while a database is open and busy.

const { parentPort, workerData } = require('node:worker_threads')
const { EskerLevel } = require('../..')
const { fill } = require('./busy')

const db = new EskerLevel(workerData.location)

db.open().then(async function () {
  globalThis.kept = await fill(db)
  parentPort.postMessage('filled')
  if (workerData.ending === 'exit') process.exit(2)
  if (workerData.ending === 'throw') throw new Error('planned')
})
