'use strict'

const ModuleError = require('module-error')
const { decoded, encoded, formatOf, secondNumber, timeToLive } = require('./encoded')
const { encodedRange, limitOf, rangeBehind } = require('./range')

// Entries of one call, and bytes of them after which it ends: so that the event loop gets its turn.
const MOST_ENTRIES = 1000
const HIGH_WATER_MARK_BYTES = 64 * 1024

/**
 * Reads and writes that take effect together. Its calls are made one after the other, in the order
 * in which the program makes them.
 */
class EskerTransaction {
  #db
  #native
  #writes
  #last
  #end

  constructor(db, native, writes) {
    this.#db = db
    this.#native = native
    this.#writes = writes
    db.attachResource(this)
  }

  get sequence() {
    return this.#native.sequence
  }

  async get(key, options) {
    const data = this.#key(key, options)
    const encoding = this.#db.valueEncoding(options?.valueEncoding)
    const value = await this.#call(() => this.#native.get(data, formatOf(encoding.format)))
    return decoded(encoding, value)
  }

  async getMany(keys, options) {
    if (!Array.isArray(keys)) throw new TypeError("The first argument 'keys' must be an array")
    const data = keys.map((key) => this.#key(key, options))
    const encoding = this.#db.valueEncoding(options?.valueEncoding)
    const values = await this.#call(() => this.#native.getMany(data, formatOf(encoding.format)))
    return values.map((value) => decoded(encoding, value))
  }

  async has(key, options) {
    const data = this.#key(key, options)
    return this.#call(() => this.#native.has(data))
  }

  async expiresAt(key, options) {
    const data = this.#key(key, options)
    return this.#call(() => this.#native.expiresAt(data))
  }

  async count(options) {
    const { lower, upper, flags } = this.#range(options)
    return this.#call(() => this.#native.count(lower, upper, flags))
  }

  async *entries(options) {
    const keys = this.#db.keyEncoding(options?.keyEncoding)
    const values = this.#db.valueEncoding(options?.valueEncoding)
    const formats = [formatOf(keys.format), formatOf(values.format)]
    let range = this.#range(options)
    let left = limitOf(options)

    while (left > 0) {
      const [{ lower, upper, flags }, size] = [range, Math.min(left, MOST_ENTRIES)]
      const { entries, last } = await this.#call(() =>
        this.#native.entries(lower, upper, flags, ...formats, size, HIGH_WATER_MARK_BYTES)
      )
      for (const [key, value] of entries) yield [decoded(keys, key), decoded(values, value)]
      if (last === undefined) return
      left -= entries.length
      range = rangeBehind(range, last)
    }
  }

  async put(key, value, options) {
    const [data, ttl] = [this.#key(key, options), timeToLive(options?.ttl)]
    const stored = this.#value(value, options)
    return this.#call(() => this.#native.put(data, stored, ttl))
  }

  async del(key, options) {
    const data = this.#key(key, options)
    return this.#call(() => this.#native.del(data))
  }

  async merge(key, operand, options) {
    const [data, ttl] = [this.#key(key, options), timeToLive(options?.ttl)]
    const stored = this.#value(operand, options)
    return this.#call(() => this.#native.merge(data, stored, ttl))
  }

  async clear(options) {
    const { lower, upper, flags } = this.#range(options)
    return this.#call(() => this.#native.clear(lower, upper, flags))
  }

  async popFirst(options) {
    const keys = this.#db.keyEncoding(options?.keyEncoding)
    const values = this.#db.valueEncoding(options?.valueEncoding)
    const formats = [formatOf(keys.format), formatOf(values.format)]
    const entry = await this.#call(() => this.#native.popFirst(...formats))
    return entry && [decoded(keys, entry[0]), decoded(values, entry[1])]
  }

  async touch(key, ttl, options) {
    const [data, time] = [this.#key(key, options), secondNumber('ttl', ttl)]
    return this.#call(() => this.#native.touch(data, time))
  }

  async expireAt(key, at, options) {
    const [data, time] = [this.#key(key, options), secondNumber('at', at)]
    return this.#call(() => this.#native.expireAt(data, time))
  }

  async persist(key, options) {
    const data = this.#key(key, options)
    return this.#call(() => this.#native.persist(data))
  }

  async commit(options) {
    return this.#ended(() =>
      this.#writes.write(1, options?.sync, (writes) => writes.commit(this.#native))
    )
  }

  async rollback() {
    return this.#ended(() => this.#native.close())
  }

  /** Rolls back what was not committed. A commit under way is done then. */
  async close() {
    if (this.#end === undefined) return this.rollback()
    await this.#end.catch(() => {})
  }

  /** Makes a call behind those before it, which are done then. */
  async #call(call) {
    this.#assertOpen()
    return this.#behind(call)
  }

  #ended(call) {
    this.#assertOpen()
    this.#end = this.#behind(call).finally(() => this.#db.detachResource(this))
    return this.#end
  }

  async #behind(call) {
    const before = this.#last
    let done
    const mine = new Promise((resolve) => {
      done = resolve
    })
    this.#last = mine

    try {
      // Not where there is nothing to wait for: arguments are copied before the call returns.
      if (before !== undefined) await before
      return await call()
    } finally {
      if (this.#last === mine) this.#last = undefined
      done()
    }
  }

  #assertOpen() {
    if (this.#end !== undefined) {
      throw new ModuleError('The transaction is not open: it was committed or rolled back', {
        code: 'LEVEL_TRANSACTION_NOT_OPEN'
      })
    }
  }

  #key(key, options) {
    this.#db._assertValidKey(key)
    return this.#kept(this.#db.keyEncoding(options?.keyEncoding).encode(key))
  }

  #value(value, options) {
    this.#db._assertValidValue(value)
    return this.#kept(this.#db.valueEncoding(options?.valueEncoding).encode(value))
  }

  #range(options) {
    const encoding = this.#db.keyEncoding(options?.keyEncoding)
    const { lower, upper, flags } = encodedRange(options ?? {}, encoding)
    return { lower: lower && this.#kept(lower), upper: upper && this.#kept(upper), flags }
  }

  /** What the native half copies, or a copy where that has to wait. */
  #kept(data) {
    const bytes = encoded(data)
    return this.#last === undefined || typeof bytes === 'string' ? bytes : Uint8Array.from(bytes)
  }
}

if (typeof Symbol.asyncDispose === 'symbol') {
  EskerTransaction.prototype[Symbol.asyncDispose] = async function () {
    return this.close()
  }
}

exports.EskerTransaction = EskerTransaction
