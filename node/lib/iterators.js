'use strict'

const { AbstractIterator, AbstractKeyIterator, AbstractValueIterator } = require('abstract-level')
const { encoded, formatOf } = require('./encoded')
const { rangeOf, KEYS, VALUES } = require('./range')
const { snapshotOf } = require('./snapshot')

// Entries of one read for `next()`, so that the event loop gets its turn between reads.
const MOST_ENTRIES = 1000

// Bytes after which a read ends.
const HIGH_WATER_MARK_BYTES = 64 * 1024

/**
 * What the three kinds of iterators have in common: an iterator of the native half, and what was
 * read ahead of it.
 */
const readingAhead = (Base, partsOf, itemsOf) =>
  class extends Base {
    #native
    #flags
    #highWaterMark
    #items = []
    #position = 0
    #isFirst = true
    #ended = false
    #signal
    #abort

    constructor(db, database, options) {
      // First: the base class makes the iterator a resource of the database, which a failure must
      // not leave behind.
      const range = rangeOf(options)
      const flags = partsOf(options)
      const highWaterMark = highWaterMarkOf(options)
      const native = database.iterator(
        range.lower,
        range.upper,
        range.flags | flags,
        formatOf(options.keyEncoding),
        formatOf(options.valueEncoding),
        snapshotOf(options)
      )

      super(db, options)
      this.#native = native
      this.#flags = flags
      this.#highWaterMark = highWaterMark
      this.#signal = options.signal ?? null
      this.#abort = () => this.#native.abort()
      this.#signal?.addEventListener('abort', this.#abort, { once: true })
    }

    async #read(size) {
      const flat = await this.#native.nextv(size, this.#highWaterMark)
      this.#ended = flat.pop()
      return itemsOf(flat, this.#flags)
    }

    async _next() {
      if (this.#position === this.#items.length) {
        if (this.#ended) return undefined
        // Many want one entry only, at first and after a seek.
        const most = this.#isFirst ? 1 : MOST_ENTRIES
        this.#isFirst = false
        this.#items = await this.#read(Math.min(most, this.limit - this.count))
        this.#position = 0
      }

      return this.#items[this.#position++]
    }

    async _nextv(size) {
      this.#isFirst = false

      if (this.#position < this.#items.length) {
        const items = this.#items.slice(this.#position, this.#position + size)
        this.#position += items.length
        return items
      }

      return this.#ended ? [] : this.#read(Math.min(size, 0xffffffff))
    }

    _seek(target) {
      this.#native.seek(encoded(target))
      this.#items = []
      this.#position = 0
      this.#isFirst = true
      this.#ended = false
    }

    async _close() {
      this.#items = []
      this.#position = 0
      this.#ended = true
      this.#signal?.removeEventListener('abort', this.#abort)
      this.#signal = null
      this.#native.close()
    }
  }

const highWaterMarkOf = function (options) {
  const bytes = options.highWaterMarkBytes ?? HIGH_WATER_MARK_BYTES
  if (typeof bytes === 'number' && bytes >= 0) return bytes
  throw new TypeError("The option 'highWaterMarkBytes' must be a number of bytes")
}

const entriesOf = function (flat, flags) {
  const both = KEYS | VALUES
  const items = []

  if ((flags & both) === both) {
    for (let i = 0; i < flat.length; i += 2) items.push([flat[i], flat[i + 1]])
  } else if ((flags & VALUES) !== 0) {
    for (const value of flat) items.push([undefined, value])
  } else {
    for (const key of flat) items.push([key, undefined])
  }

  return items
}

// Where neither is wanted, keys are read all the same, for their number.
const partsOf = (options) => (options.values ? (options.keys ? KEYS | VALUES : VALUES) : KEYS)
const same = (flat) => flat

exports.EskerIterator = readingAhead(AbstractIterator, partsOf, entriesOf)
exports.EskerKeyIterator = readingAhead(AbstractKeyIterator, () => KEYS, same)
exports.EskerValueIterator = readingAhead(AbstractValueIterator, () => VALUES, same)
