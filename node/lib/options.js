'use strict'

const { describe } = require('./encoded')

/** The options of open() as the native half takes them. */
exports.openOptions = function (location, options, operator) {
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
    follower: typed(options, 'follower', 'boolean') ?? false,
    keyspace: typed(options, 'keyspace', 'string') ?? 'default',
    mergeOperator: operator.name,
    servedOperator: operator.served,
    ttl: ttl !== false,
    defaultTtl: typeof ttl === 'number' ? ttl : undefined,
    compression: typed(options, 'compression', 'boolean'),
    cacheSize: size(options, 'cacheSize'),
    writeBufferSize: size(options, 'writeBufferSize'),
    blockSize: size(options, 'blockSize'),
    memoryBudget: size(options, 'memoryBudget'),
    ...retention(options.keepChanges ?? undefined)
  }
}

/** How long changes are kept. */
const retention = function (keepChanges) {
  if (keepChanges === undefined) return {}
  if (keepChanges === 'as-before') return { keepChangesAsBefore: true }

  if (typeof keepChanges === 'object' && !Array.isArray(keepChanges)) {
    const { bytes = null, time = null, ...others } = keepChanges
    const hasOne = (bytes === null) !== (time === null)

    if (hasOne && Object.keys(others).length === 0) {
      return bytes === null
        ? { keepChangesTime: size(keepChanges, 'time', 'keepChanges.time', 'milliseconds') }
        : { keepChangesBytes: size(keepChanges, 'bytes', 'keepChanges.bytes') }
    }
  }

  throw new TypeError(
    "The option 'keepChanges' must be an object with either 'bytes' or 'time', or 'as-before'"
  )
}

const typed = function (options, name, type, shown = name) {
  const value = options[name] ?? undefined
  if (value === undefined || typeof value === type) return value // eslint-disable-line valid-typeof
  throw new TypeError(`The option '${shown}' must be a ${type}, received ${describe(value)}`)
}

const size = function (options, name, shown = name, unit = 'bytes') {
  const value = typed(options, name, 'number', shown)
  if (value === undefined || (Number.isSafeInteger(value) && value >= 0)) return value
  throw new RangeError(`The option '${shown}' must be a whole number of ${unit}, received ${value}`)
}
