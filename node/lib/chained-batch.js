'use strict'

const { AbstractChainedBatch } = require('abstract-level')
const { encoded, timeToLive } = require('./encoded')
const binding = require('./binding')

class EskerChainedBatch extends AbstractChainedBatch {
  #writes
  #operations = new binding.Operations()

  constructor(db, writes) {
    super(db)
    this.#writes = writes
  }

  _put(key, value, options) {
    this.#operations.put(encoded(key), encoded(value), timeToLive(options.ttl))
  }

  _del(key) {
    this.#operations.del(encoded(key))
  }

  _clear() {
    this.#operations.clear()
  }

  _write(options) {
    return this.#writes.batch(this.length, options.sync, this.#operations)
  }

  async _close() {
    this.#operations.clear()
  }
}

exports.EskerChainedBatch = EskerChainedBatch
