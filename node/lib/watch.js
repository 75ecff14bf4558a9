'use strict'

const ModuleError = require('module-error')
const { milliseconds } = require('./encoded')

/** Waits for writes to keys that begin with a prefix. */
class EskerWatch {
  #db
  #native
  #isClosed = false

  constructor(db, native) {
    this.#db = db
    this.#native = native
    db.attachResource(this)
  }

  async wait(timeout) {
    const most = milliseconds(timeout)

    if (this.#isClosed) {
      throw new ModuleError('The watch is not open: cannot wait after close()', {
        code: 'LEVEL_WATCH_NOT_OPEN'
      })
    }

    return this.#native.wait(most)
  }

  async close() {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#native.close()
    this.#db.detachResource(this)
  }
}

if (typeof Symbol.asyncDispose === 'symbol') {
  EskerWatch.prototype[Symbol.asyncDispose] = async function () {
    return this.close()
  }
}

exports.EskerWatch = EskerWatch
