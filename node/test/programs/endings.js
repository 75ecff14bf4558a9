'use strict'

// Ends in the way that the second argument names, while a database is open and busy.

const { EskerLevel } = require('../..')
const { fill, wait } = require('./busy')

const [location, ending] = process.argv.slice(2)
const db = new EskerLevel(location, { keepChanges: { bytes: 1 << 20 } })
const planned = new Error('planned')

const ENDINGS = {
  'by itself': () => {},
  'by process.exit()': () => process.exit(3),
  'by process.exit() in a callback': () => db.put('x', 'y').then(() => process.exit(3)),
  'by an exception': () => {
    setImmediate(() => {
      throw planned
    })
  },
  'by a rejection': () => Promise.reject(planned),
  'while it closes': () => {
    db.close()
    process.exit(3)
  },
  'while it closes by itself': () => db.close(),
  'while another opens': () => {
    new EskerLevel(`${location}-other`).open()
    process.exit(3)
  },
  'by a signal': () => process.kill(process.pid, 'SIGKILL')
}

db.open().then(async function () {
  globalThis.kept = await fill(db)
  if (ending !== 'by itself') await wait(db)
  return ENDINGS[ending]()
})
