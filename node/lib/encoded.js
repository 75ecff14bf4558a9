'use strict'

// What passes the border to the native half: strings and bytes, and numbers for what they become.

const { isUint8Array } = require('node:util').types
const ModuleError = require('module-error')

// What the engine takes, refused here before it is copied. Strings are always shorter.
const MOST_BYTES = 2 ** 30

const FORMATS = { utf8: 0, buffer: 1, view: 2 }

/** The number of the format that keys or values are read as. */
exports.formatOf = function (encoding) {
  return FORMATS[encoding] ?? FORMATS.buffer
}

/** The key or value, if an encoding made one that can be stored. */
exports.encoded = function (data) {
  if (typeof data === 'string') return data

  if (isUint8Array(data)) {
    if (data.byteLength <= MOST_BYTES) return data
    throw new ModuleError(`A key or value of ${data.byteLength} bytes is too long`, {
      code: 'LEVEL_INVALID_ARGUMENT'
    })
  }

  throw new TypeError(
    `A key or value must be encoded as a string, Buffer or Uint8Array, received ${describe(data)}`
  )
}

/** A time to live, if there is one. */
exports.timeToLive = function (ttl) {
  if (ttl === undefined || ttl === null || typeof ttl === 'number') return ttl ?? undefined
  throw new TypeError(
    `The option 'ttl' must be a number of milliseconds, received ${describe(ttl)}`
  )
}

/** A number of milliseconds that is the second argument of a call. */
exports.secondNumber = function (name, number) {
  if (typeof number === 'number') return number
  throw new TypeError(
    `The second argument '${name}' must be a number of milliseconds, received ${describe(number)}`
  )
}

/** What an encoding makes of a key or value that was read; nothing of none. */
exports.decoded = function (encoding, data) {
  if (data === undefined) return undefined

  try {
    return encoding.decode(data)
  } catch (err) {
    throw new ModuleError('Could not decode a key or value', {
      code: 'LEVEL_DECODE_ERROR',
      cause: err
    })
  }
}

/** The most milliseconds of a wait, if there is a limit. */
exports.milliseconds = function (timeout) {
  if (timeout === undefined || timeout === Infinity) return undefined
  if (typeof timeout === 'number' && timeout >= 0) return timeout
  throw new TypeError(
    `The first argument 'timeout' must be a number of milliseconds, received ${describe(timeout)}`
  )
}

/** Refuses an argument that is no place in the order of writes, and no number of a keyspace. */
exports.wholeNumber = function (what, number) {
  if (typeof number !== 'number')
    throw new TypeError(`${what} must be a number, received ${describe(number)}`)
  if (!Number.isSafeInteger(number) || number < 0)
    throw new RangeError(`${what} must be a whole number, not below 0, received ${number}`)
}

const describe = (exports.describe = function (data) {
  return data === null ? 'null' : Array.isArray(data) ? 'an array' : typeof data
})
