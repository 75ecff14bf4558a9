'use strict'

const ModuleError = require('module-error')
const { milliseconds, wholeNumber } = require('./encoded')

// Batches of one read, and bytes of keys and values after which it ends: so that the event loop gets
// its turn between reads.
const MOST_BATCHES = 1000
const HIGH_WATER_MARK_BYTES = 64 * 1024

const KEYS = ['key', 'gt', 'gte', 'lt', 'lte']
const VALUES = ['value', 'operand']

/** What was written, in order: a reader of the native half, and what was read ahead of it. */
class EskerChanges {
  #db
  #native
  #keyEncoding
  #valueEncoding
  #batches = []
  #index = 0
  #position
  #nativePosition
  #isBusy = false
  #isClosed = false

  constructor(db, native, keyEncoding, valueEncoding) {
    this.#db = db
    this.#native = native
    this.#position = native.startPosition
    this.#keyEncoding = keyEncoding
    this.#valueEncoding = valueEncoding
    db.attachResource(this)
  }

  get position() {
    return this.#position
  }

  async next() {
    return this.#exclusively(async () => {
      if (this.#index === this.#batches.length) {
        const read = await this.#native.nextv(MOST_BATCHES, HIGH_WATER_MARK_BYTES)
        this.#assertOpen()
        this.#batches = read.batches
        this.#index = 0
        this.#nativePosition = read.position
        if (read.batches.length === 0) {
          this.#position = read.position
          return undefined
        }
      }

      // What cannot be decoded stays: the next call meets it again.
      const batch = this.#batches[this.#index].map((change) => this.#decoded(change))
      this.#batches[this.#index++] = undefined
      // Numbers in front of the next batch may go to other writes after a crash: the engine knows.
      this.#position = this.#index < this.#batches.length ? batch.at(-1).sequence + 1 : this.#nativePosition
      return batch
    })
  }

  async wait(timeout) {
    const most = milliseconds(timeout)
    return this.#exclusively(() => this.#index < this.#batches.length || this.#native.wait(most))
  }

  async keyspaceSettings(keyspaceId, sequence) {
    wholeNumber("The first argument 'keyspaceId'", keyspaceId)
    wholeNumber("The second argument 'sequence'", sequence)
    return this.#exclusively(() => this.#native.keyspaceSettings(keyspaceId, sequence))
  }

  async close() {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#batches = []
    this.#index = 0
    this.#native.close()
    this.#db.detachResource(this)
  }

  async *[Symbol.asyncIterator]() {
    this.#assertOpen()

    try {
      while (!this.#isClosed) {
        const batch = await this.next()
        if (batch !== undefined) yield batch
        else await this.wait()
      }
    } catch (err) {
      // A close ends the loop.
      if (!this.#isClosed) throw err
    } finally {
      await this.close()
    }
  }

  async #exclusively(call) {
    this.#assertOpen()

    if (this.#isBusy) {
      throw new ModuleError('The reader of changes is busy: await a call before the next one', {
        code: 'LEVEL_CHANGES_BUSY'
      })
    }

    this.#isBusy = true

    try {
      return await call()
    } finally {
      this.#isBusy = false
    }
  }

  #assertOpen() {
    if (this.#isClosed) {
      throw new ModuleError('The reader of changes is not open: cannot use it after close()', {
        code: 'LEVEL_CHANGES_NOT_OPEN'
      })
    }
  }

  #decoded(change) {
    const decoded = { ...change }

    try {
      for (const name of KEYS)
        if (name in change) decoded[name] = this.#keyEncoding.decode(change[name])
      for (const name of VALUES)
        if (name in change) decoded[name] = this.#valueEncoding.decode(change[name])
    } catch (err) {
      throw new ModuleError('Could not decode a change', { code: 'LEVEL_DECODE_ERROR', cause: err })
    }

    return decoded
  }
}

if (typeof Symbol.asyncDispose === 'symbol') {
  EskerChanges.prototype[Symbol.asyncDispose] = async function () {
    return this.close()
  }
}

exports.EskerChanges = EskerChanges
