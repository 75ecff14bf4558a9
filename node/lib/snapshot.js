'use strict'

const { AbstractSnapshot } = require('abstract-level')

const kNative = Symbol('native')

class EskerSnapshot extends AbstractSnapshot {
  constructor(native, options) {
    super(options)
    this[kNative] = native
  }

  get sequence() {
    return this[kNative].sequence
  }

  async _close() {
    this[kNative].close()
  }
}

/** The native half of the snapshot that options name, if they name one. */
exports.snapshotOf = function (options) {
  const snapshot = options.snapshot
  if (snapshot === undefined || snapshot === null) return undefined
  const native = snapshot[kNative]
  if (native === undefined)
    throw new TypeError("The option 'snapshot' must be a snapshot of an EskerLevel database")
  return native
}

exports.EskerSnapshot = EskerSnapshot
