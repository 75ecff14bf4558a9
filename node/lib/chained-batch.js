'use strict'

const { AbstractChainedBatch } = require('abstract-level')
const { encoded, timeToLive } = require('./encoded')
const binding = require('./binding')

class EskerChainedBatch extends AbstractChainedBatch {
  #database
  #operations = new binding.Operations()

  constructor(db, database) {
    super(db)
    this.#database = database
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
    return this.#database.write(this.#operations, options.sync === true)
  }

  async _close() {
    this.#operations.clear()
  }
}

exports.EskerChainedBatch = EskerChainedBatch
