'use strict'

const { describe } = require('./encoded')

/** The options of open() as the native half takes them. */
exports.openOptions = function (location, options) {
  const ttl = options.ttl ?? false

  if (typeof ttl !== 'boolean' && typeof ttl !== 'number') {
    throw new TypeError(
      `The option 'ttl' must be a boolean or a number of milliseconds, received ${describe(ttl)}`
    )
  }

  return {
    location,
    createIfMissing: options.createIfMissing,
    errorIfExists: options.errorIfExists,
    readOnly: typed(options, 'readOnly', 'boolean') ?? false,
    keyspace: typed(options, 'keyspace', 'string') ?? 'default',
    mergeOperator: typed(options, 'mergeOperator', 'string'),
    ttl: ttl !== false,
    defaultTtl: typeof ttl === 'number' ? ttl : undefined,
    compression: typed(options, 'compression', 'boolean'),
    cacheSize: size(options, 'cacheSize'),
    writeBufferSize: size(options, 'writeBufferSize'),
    blockSize: size(options, 'blockSize'),
    memoryBudget: size(options, 'memoryBudget')
  }
}

const typed = function (options, name, type) {
  const value = options[name] ?? undefined
  if (value === undefined || typeof value === type) return value // eslint-disable-line valid-typeof
  throw new TypeError(`The option '${name}' must be a ${type}, received ${describe(value)}`)
}

const size = function (options, name) {
  const value = typed(options, name, 'number')
  if (value === undefined || (Number.isSafeInteger(value) && value >= 0)) return value
  throw new RangeError(`The option '${name}' must be a whole number of bytes, received ${value}`)
}
