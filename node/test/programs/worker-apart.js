'use strict'

// A worker thread that tries to open the database of another thread, and then uses one of its own.

const { parentPort, workerData } = require('node:worker_threads')
const { EskerLevel } = require('../..')

const main = async function () {
  const code = await new EskerLevel(workerData.location).open().catch((err) => err.cause.code)
  const db = new EskerLevel(workerData.own)
  await db.put('a', '2')
  const value = await db.get('a')
  await db.close()
  parentPort.postMessage([code, value])
}

main()
