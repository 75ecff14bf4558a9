import {
  AbstractBatchDelOperation,
  AbstractBatchOptions,
  AbstractBatchPutOperation,
  AbstractChainedBatch,
  AbstractChainedBatchPutOptions,
  AbstractChainedBatchWriteOptions,
  AbstractClearOptions,
  AbstractDatabaseOptions,
  AbstractDelOptions,
  AbstractGetManyOptions,
  AbstractGetOptions,
  AbstractHasManyOptions,
  AbstractHasOptions,
  AbstractIterator,
  AbstractIteratorOptions,
  AbstractKeyIterator,
  AbstractKeyIteratorOptions,
  AbstractLevel,
  AbstractOpenOptions,
  AbstractPutOptions,
  AbstractSnapshot,
  AbstractValueIterator,
  AbstractValueIteratorOptions,
  Transcoder
} from 'abstract-level'

/** An `abstract-level` database in a directory, backed by Esker. */
export class EskerLevel<KDefault = string, VDefault = string> extends AbstractLevel<
  string | Buffer | Uint8Array,
  KDefault,
  VDefault
> {
  /**
   * A database that opens itself when the current turn of the event loop ends.
   *
   * @param location The directory. It is created if it is missing.
   */
  constructor(location: string, options?: DatabaseOptions<KDefault, VDefault> | undefined)

  /** The directory. */
  get location(): string

  /**
   * The number of the keyspace, which no other keyspace of the database ever has, and which a rename
   * does not change: the `keyspaceId` of its changes. The database must be open.
   */
  get keyspaceId(): number

  open(): Promise<void>
  open(options: OpenOptions): Promise<void>

  get(key: KDefault): Promise<VDefault | undefined>
  get<K = KDefault, V = VDefault>(key: K, options: GetOptions<K, V>): Promise<V | undefined>

  getSync(key: KDefault): VDefault | undefined
  getSync<K = KDefault, V = VDefault>(key: K, options: GetOptions<K, V>): V | undefined

  getMany(keys: KDefault[]): Promise<Array<VDefault | undefined>>
  getMany<K = KDefault, V = VDefault>(
    keys: K[],
    options: GetManyOptions<K, V>
  ): Promise<Array<V | undefined>>

  has(key: KDefault): Promise<boolean>
  has<K = KDefault>(key: K, options: HasOptions<K>): Promise<boolean>

  hasMany(keys: KDefault[]): Promise<boolean[]>
  hasMany<K = KDefault>(keys: K[], options: HasManyOptions<K>): Promise<boolean[]>

  put(key: KDefault, value: VDefault): Promise<void>
  put<K = KDefault, V = VDefault>(key: K, value: V, options: PutOptions<K, V>): Promise<void>

  del(key: KDefault): Promise<void>
  del<K = KDefault>(key: K, options: DelOptions<K>): Promise<void>

  batch(operations: Array<BatchOperation<typeof this, KDefault, VDefault>>): Promise<void>
  batch<K = KDefault, V = VDefault>(
    operations: Array<BatchOperation<typeof this, K, V>>,
    options: BatchOptions<K, V>
  ): Promise<void>
  batch(): ChainedBatch<typeof this, KDefault, VDefault>

  clear(): Promise<void>
  clear<K = KDefault>(options: ClearOptions<K>): Promise<void>

  iterator(): Iterator<typeof this, KDefault, VDefault>
  iterator<K = KDefault, V = VDefault>(options: IteratorOptions<K, V>): Iterator<typeof this, K, V>

  keys(): KeyIterator<typeof this, KDefault>
  keys<K = KDefault>(options: KeyIteratorOptions<K>): KeyIterator<typeof this, K>

  values(): ValueIterator<typeof this, KDefault, VDefault>
  values<K = KDefault, V = VDefault>(
    options: ValueIteratorOptions<K, V>
  ): ValueIterator<typeof this, K, V>

  snapshot(options?: any | undefined): Snapshot

  /**
   * Combines an operand with the value of a key, by the merge operator of the keyspace, without
   * reading it. The operand is encoded as values are.
   */
  merge(key: KDefault, operand: VDefault): Promise<void>
  merge<K = KDefault, V = VDefault>(key: K, operand: V, options: MergeOptions<K, V>): Promise<void>

  /**
   * When the value of a key expires, in milliseconds since 1970: `Infinity` if never, `undefined`
   * if the key has no value.
   */
  expiresAt(key: KDefault): Promise<number | undefined>
  expiresAt<K = KDefault>(key: K, options: HasOptions<K>): Promise<number | undefined>

  /**
   * Makes the value of a key live for `ttl` milliseconds from now on.
   *
   * @returns Whether the key has a value.
   */
  touch(key: KDefault, ttl: number): Promise<boolean>
  touch<K = KDefault>(key: K, ttl: number, options: KeyOptions<K>): Promise<boolean>

  /**
   * Makes the value of a key live for good.
   *
   * @returns Whether the key has a value.
   */
  persist(key: KDefault): Promise<boolean>
  persist<K = KDefault>(key: K, options: KeyOptions<K>): Promise<boolean>

  /**
   * Makes the value of a key expire at a time, in milliseconds since 1970; `Infinity` is never.
   *
   * @returns Whether the key has a value.
   */
  expireAt(key: KDefault, at: number): Promise<boolean>
  expireAt<K = KDefault>(key: K, at: number, options: KeyOptions<K>): Promise<boolean>

  /**
   * Puts the value of a key that has none.
   *
   * @returns The value that the key has, which was not changed; `undefined` if it had none.
   */
  putIfAbsent(key: KDefault, value: VDefault): Promise<VDefault | undefined>
  putIfAbsent<K = KDefault, V = VDefault>(
    key: K,
    value: V,
    options: ReadWriteOptions<K, V>
  ): Promise<V | undefined>

  /**
   * Puts the value of a key that has the expected one. `undefined` is no value: as the expected one, of
   * a key that has none, and as the new one, to delete the key.
   */
  compareAndSwap(
    key: KDefault,
    expected: VDefault | undefined,
    value: VDefault | undefined
  ): Promise<CompareAndSwap<VDefault>>
  compareAndSwap<K = KDefault, V = VDefault>(
    key: K,
    expected: V | undefined,
    value: V | undefined,
    options: ReadWriteOptions<K, V>
  ): Promise<CompareAndSwap<V>>

  /**
   * Combines an operand with the value of a key, as `merge()` does.
   *
   * @returns The value of the key then.
   */
  mergeAndGet(key: KDefault, operand: VDefault): Promise<VDefault | undefined>
  mergeAndGet<K = KDefault, V = VDefault>(
    key: K,
    operand: V,
    options: ReadWriteOptions<K, V>
  ): Promise<V | undefined>

  /**
   * Deletes a key.
   *
   * @returns The value that it had.
   */
  take(key: KDefault): Promise<VDefault | undefined>
  take<K = KDefault, V = VDefault>(key: K, options: TakeOptions<K, V>): Promise<V | undefined>

  /**
   * Deletes the least key.
   *
   * @returns The key and its value; `undefined` if there is none.
   */
  popFirst(): Promise<[KDefault, VDefault] | undefined>
  popFirst<K = KDefault, V = VDefault>(options: PopFirstOptions<K, V>): Promise<[K, V] | undefined>

  /** The number of keys of a range, which costs a scan. */
  count(): Promise<number>
  count<K = KDefault>(options: CountOptions<K>): Promise<number>

  /**
   * Begins a transaction: it reads as of this moment, and what it writes takes effect together, or
   * not at all (`LEVEL_CONFLICT`). It must be ended.
   */
  transaction(): Promise<Transaction<KDefault, VDefault>>

  /**
   * Makes a transaction, calls `body` with it, and commits it. Where the commit meets another writer it
   * begins anew, ten times in all if `attempts` says nothing else. An error of `body` rolls it back.
   *
   * @returns What `body` returned.
   */
  transact<T>(
    body: (transaction: Transaction<KDefault, VDefault>) => T | Promise<T>,
    options?: TransactOptions
  ): Promise<T>

  /**
   * Loads entries, whose keys ascend, straight into tables: all of them become visible and durable at
   * once, or none. They are gathered in memory.
   *
   * @returns How many there were.
   */
  ingest(
    entries: Iterable<[KDefault, VDefault]> | AsyncIterable<[KDefault, VDefault]>
  ): Promise<number>
  ingest<K = KDefault, V = VDefault>(
    entries: Iterable<[K, V]> | AsyncIterable<[K, V]>,
    options: EncodeOptions<K, V>
  ): Promise<number>

  /** About the bytes that the keys from `start` to `end`, without the latter, take. */
  approximateSize(start: KDefault, end: KDefault): Promise<number>
  approximateSize<K = KDefault>(start: K, end: K, options: KeyOptions<K>): Promise<number>

  /** About how many keys there are from `start` to `end`, without the latter. Reads no file. */
  approximateCount(start: KDefault, end: KDefault): Promise<number>
  approximateCount<K = KDefault>(start: K, end: K, options: KeyOptions<K>): Promise<number>

  /**
   * Makes entries expire that are written from now on: after so many milliseconds, or with `true` if
   * a put says so.
   */
  setTtl(ttl: true | number): Promise<void>

  /**
   * Gives the keyspace a merge operator: a built-in one by its name, or that of a module. In the place
   * of another one it takes the time to rewrite the keyspace.
   */
  setMergeOperator(operator: string | MergeOperatorModule): Promise<void>

  /**
   * Gives the keyspace another name, in one atomic step that is durable when the promise is settled.
   * Iterators and snapshots go on. A later `open()` needs the new name as its `keyspace`.
   */
  renameKeyspace(name: string): Promise<void>

  /** Writes everything acknowledged so far into tables. */
  flush(): Promise<void>

  /**
   * Makes a copy in a new or empty directory that opens as a database: by hard links where those work,
   * or, with `copy`, of every file.
   */
  checkpoint(directory: string, options?: CheckpointOptions): Promise<void>

  /**
   * Reads everything and checks it. The error is the first damage, mostly `LEVEL_CORRUPTION`; its
   * `damage` has the texts of all.
   */
  verify(): Promise<void>

  /** The names of all keyspaces. */
  keyspaces(): Promise<string[]>

  /** Removes a keyspace with all that is in it. */
  dropKeyspace(name: string): Promise<void>

  /** Compacts the tables that hold the keys from `start` to `end`. */
  compactRange(start: KDefault, end: KDefault): Promise<void>
  compactRange<K = KDefault>(start: K, end: K, options: KeyOptions<K>): Promise<void>

  /**
   * Begins to read what was written, in all keyspaces, where the database keeps changes:
   * `keepChanges`. `LEVEL_GONE` if those from that number on are not kept any more.
   */
  changes(): Promise<Changes<KDefault, VDefault>>
  changes<K = KDefault, V = VDefault>(options: ChangesOptions<K, V>): Promise<Changes<K, V>>

  /** Notes from here on whether keys that begin with a prefix are written; without one, any keys. */
  watch(prefix?: KDefault): Promise<Watch>
  watch<K = KDefault>(prefix: K, options: KeyOptions<K>): Promise<Watch>

  /**
   * Reads what the writer has written since, where the database was opened with `follower`. What was
   * acknowledged before the call is there then.
   *
   * @returns The number of the last write that is there.
   */
  catchUp(): Promise<number>

  /**
   * How far a database that was opened with `follower` is behind its writer; it stays where it is.
   * `undefined` if the log from there on is gone, because it is in tables, which the next `catchUp()`
   * reads.
   */
  lag(): Promise<FollowerLag | undefined>

  /** The value of a property of the engine, `esker.health.writable` for example. */
  getProperty(name: string): string | undefined

  /**
   * As the method, of the database in a directory, without a lock and without a write: a writer may
   * be at work beside it. It need not be one that opens.
   */
  static verify(location: string): Promise<void>

  /**
   * Makes a damaged database open again, with what can be read of it. It must not be open.
   */
  static repair(location: string): Promise<void>

  /**
   * Removes the database in a directory with all that is in it; the directory stays. It must not be
   * open.
   */
  static destroy(location: string): Promise<void>
}

/** How far a follower is behind what its writer has written. */
export interface FollowerLag {
  /** Batches in the log that the follower has not read. */
  batches: number
  /** The bytes of log that they take. */
  logBytes: number
  /** The number of the last write in them; if there are none, of the last that the follower has. */
  sequence: number
}

/**
 * Reads and writes that take effect together. It reads as of the moment at which it began, with its own
 * writes. Calls are made one after the other, in the order of the program.
 */
export interface Transaction<KDefault, VDefault> {
  /** The number of the last write that it sees. It stays after the end. */
  readonly sequence: number

  get(key: KDefault): Promise<VDefault | undefined>
  get<K = KDefault, V = VDefault>(key: K, options: EncodingOptions<K, V>): Promise<V | undefined>

  getMany(keys: KDefault[]): Promise<Array<VDefault | undefined>>
  getMany<K = KDefault, V = VDefault>(
    keys: K[],
    options: EncodingOptions<K, V>
  ): Promise<Array<V | undefined>>

  has(key: KDefault): Promise<boolean>
  has<K = KDefault>(key: K, options: KeyOptions<K>): Promise<boolean>

  /**
   * As for the database, as of the beginning of the transaction. `LEVEL_INVALID_ARGUMENT` for a key
   * that it has written: times to live count from the commit.
   */
  expiresAt(key: KDefault): Promise<number | undefined>
  expiresAt<K = KDefault>(key: K, options: KeyOptions<K>): Promise<number | undefined>

  count(): Promise<number>
  count<K = KDefault>(options: TransactionRangeOptions<K>): Promise<number>

  /**
   * The entries of a range, which are read while the loop runs. The loop may write, and meets what it
   * writes ahead of itself, or not.
   */
  entries(): AsyncIterableIterator<[KDefault, VDefault]>
  entries<K = KDefault, V = VDefault>(
    options: TransactionEntriesOptions<K, V>
  ): AsyncIterableIterator<[K, V]>

  put(key: KDefault, value: VDefault): Promise<void>
  put<K = KDefault, V = VDefault>(
    key: K,
    value: V,
    options: EncodeOptions<K, V> & LifeOptions
  ): Promise<void>

  del(key: KDefault): Promise<void>
  del<K = KDefault>(key: K, options: KeyOptions<K>): Promise<void>

  merge(key: KDefault, operand: VDefault): Promise<void>
  merge<K = KDefault, V = VDefault>(
    key: K,
    operand: V,
    options: EncodeOptions<K, V> & LifeOptions
  ): Promise<void>

  /** Deletes the keys of a range. */
  clear(): Promise<void>
  clear<K = KDefault>(options: TransactionRangeOptions<K>): Promise<void>

  popFirst(): Promise<[KDefault, VDefault] | undefined>
  popFirst<K = KDefault, V = VDefault>(options: EncodingOptions<K, V>): Promise<[K, V] | undefined>

  touch(key: KDefault, ttl: number): Promise<void>
  touch<K = KDefault>(key: K, ttl: number, options: KeyOptions<K>): Promise<void>

  expireAt(key: KDefault, at: number): Promise<void>
  expireAt<K = KDefault>(key: K, at: number, options: KeyOptions<K>): Promise<void>

  persist(key: KDefault): Promise<void>
  persist<K = KDefault>(key: K, options: KeyOptions<K>): Promise<void>

  /** Writes all in one atomic step, or nothing: `LEVEL_CONFLICT`. The transaction has ended then. */
  commit(options?: WriteOptions): Promise<void>

  /** Ends it without writing. */
  rollback(): Promise<void>

  /** Rolls back what was not committed; nothing if it has ended. */
  close(): Promise<void>

  /** Ends it, as `close()` does: for `await using`. */
  [Symbol.asyncDispose](): Promise<void>
}

/** What has become of a `compareAndSwap()`. */
export interface CompareAndSwap<V> {
  /** Whether the key had the expected value. */
  swapped: boolean

  /** The value that it has instead. */
  current: V | undefined
}

/** The names of the merge operators that the engine has. */
export type MergeOperator =
  'uint64add' | 'int64add' | 'max' | 'min' | 'put' | 'bytesxor' | 'bitor' | `stringappend:${string}`

/**
 * A merge operator of the program: a module that exports it. The module is loaded in a worker thread
 * of its own.
 */
export interface MergeOperatorModule {
  /** An absolute path, or a URL of a file, as `new URL('./operator.mjs', import.meta.url)`. */
  module: string | URL
}

/** What such a module exports, or has as its default. The functions return no promises. */
export interface ProgramMergeOperator {
  /** Stored with the keyspace. Change it when the meaning of stored operands changes. */
  name: string

  /** The value after all operands, oldest first; nothing deletes the key. */
  fullMerge(
    key: Buffer,
    existing: Buffer | undefined,
    operands: Buffer[]
  ): string | Uint8Array | null | undefined

  /** Makes one operand of two, or returns nothing where it cannot. */
  partialMerge?(key: Buffer, older: Buffer, newer: Buffer): string | Uint8Array | null | undefined

  /** Throws where `fullMerge` could never take the operand, which refuses the write. */
  checkOperand?(operand: Buffer): void
}

/** One operation as it was committed. */
export type Change<K, V> = {
  /** Its place in the order of writes. Numbers ascend, with gaps. */
  sequence: number

  /** The name that the keyspace had then; where it was renamed, the new one. */
  keyspace: string

  /** The number of the keyspace, which no other keyspace of the database ever has. */
  keyspaceId: number
} & ChangeOperation<K, V>

/** What was done. `expiresAt` is in milliseconds since 1970, and `Infinity` for never. */
export type ChangeOperation<K, V> =
  | { type: 'put'; key: K; value: V; expiresAt: number }
  | { type: 'del'; key: K }
  /** `isFirst`: the operand was combined with no value. */
  | { type: 'merge'; key: K; operand: V; expiresAt: number; isFirst: boolean }
  /** The keys of a range were deleted: one that `clear()` takes. */
  | { type: 'clear'; gt?: K; gte?: K; lt?: K; lte?: K }
  /** Pairs were loaded, which are not listed: read the keyspace. */
  | { type: 'load' }
  | { type: 'dropKeyspace' }
  /** The keyspace was renamed, or has other settings from here on. */
  | ({ type: 'alterKeyspace'; formerName: string } & Pick<
      KeyspaceSettings,
      'mergeOperator' | 'ttl'
    >)
  /** One that this version has no name for. */
  | { type: 'other' }

/** What a keyspace was at one place in the order of writes. */
export interface KeyspaceSettings {
  /** Its name. */
  name: string

  /** The name of the order of its keys. */
  comparator: string

  /** The name of its merge operator, if it has one. */
  mergeOperator: string | undefined

  /** Whether entries can expire; a number: after so many milliseconds by default. */
  ttl: boolean | number
}

/** What readers of changes begin with. */
export interface ChangesOptions<K, V> {
  /** The first write. Default: 0, which is all that is kept. */
  from?: number | undefined

  /** Reads only what a power failure cannot take back. Default: false. */
  onlyDurable?: boolean | undefined

  keyEncoding?: string | Transcoder.PartialDecoder<K> | undefined
  valueEncoding?: string | Transcoder.PartialDecoder<V> | undefined
}

/**
 * What was written, in order. A loop over it goes on with what is written later, and ends where it or
 * the database is closed.
 */
export interface Changes<K, V> extends AsyncIterable<Change<K, V>[]> {
  /** The number to go on from: above all that were read. It stays after `close()`. */
  readonly position: number

  /** The next committed batch; `undefined` if there is none for now. */
  next(): Promise<Change<K, V>[] | undefined>

  /**
   * Waits for a write, for at most so many milliseconds, or for as long as it takes.
   *
   * @returns Whether there may be more to read.
   */
  wait(timeout?: number): Promise<boolean>

  /** What the keyspace with that number was behind a write, if it is known. */
  keyspaceSettings(keyspaceId: number, sequence: number): Promise<KeyspaceSettings | undefined>

  /** Ends it. A wait under way ends with `LEVEL_CHANGES_NOT_OPEN`, within a tenth of a second. */
  close(): Promise<void>

  /** Ends it, as `close()` does: for `await using`. */
  [Symbol.asyncDispose](): Promise<void>
}

/** Waits for writes to keys that begin with a prefix. */
export interface Watch {
  /**
   * Waits for a write, for at most so many milliseconds, or for as long as it takes. Each write ends
   * one wait.
   *
   * @returns Whether there was one since the last wait that said so, or since the watch was made.
   */
  wait(timeout?: number): Promise<boolean>

  /** Ends it. Waits under way end with `LEVEL_WATCH_NOT_OPEN`, within a tenth of a second. */
  close(): Promise<void>

  /** Ends it, as `close()` does: for `await using`. */
  [Symbol.asyncDispose](): Promise<void>
}

/** What can be set when a database is opened. */
export interface OpenOptions extends AbstractOpenOptions {
  /** Opens it beside its writer, as it is then. Default: false. */
  readOnly?: boolean | undefined

  /**
   * Opens it behind its writer, in another process or in this one: it is as it was at the last
   * `catchUp()`. Default: false.
   */
  follower?: boolean | undefined

  /**
   * How long what was written is kept for `changes()`: so many bytes of the log, or for so many
   * milliseconds; `as-before` is for a program that opens the database of another one for a moment.
   * Default: nothing is kept, and what was kept before is given up.
   */
  keepChanges?: { bytes: number } | { time: number } | 'as-before' | undefined

  /** The keyspace of all keys. Default: `default`. */
  keyspace?: string | undefined

  /** The merge operator of the keyspace. Stored when the keyspace is created. */
  mergeOperator?: MergeOperator | MergeOperatorModule | undefined

  /**
   * Whether entries of the keyspace can expire; a number is the time to live of those that are put
   * without one, in milliseconds. Stored when the keyspace is created. Default: false.
   */
  ttl?: boolean | number | undefined

  /** Whether blocks are compressed, with LZ4. Default: true. */
  compression?: boolean | undefined

  /** Bytes of the block cache. Default: 64 MiB. */
  cacheSize?: number | undefined

  /** Bytes of a memtable. Default: 64 MiB. */
  writeBufferSize?: number | undefined

  /** Bytes of a block before it is compressed. Default: 8 KiB. */
  blockSize?: number | undefined

  /** Bytes for memtables, caches, indexes and filters together. Default: no such limit. */
  memoryBudget?: number | undefined
}

/** Options of the constructor. */
export interface DatabaseOptions<K, V>
  extends AbstractDatabaseOptions<K, V>, Omit<OpenOptions, 'passive'> {}

/** Options of writes. */
export interface WriteOptions {
  /** Settles the promise when the write is on the device. Default: false. */
  sync?: boolean | undefined
}

/** Options of values. */
export interface LifeOptions {
  /** How many milliseconds the value lives; the keyspace must have been created with `ttl`. */
  ttl?: number | undefined
}

/** Options of calls that have keys and no values. */
export interface KeyOptions<K> {
  keyEncoding?: string | Transcoder.PartialEncoder<K> | undefined
}

/** Options of calls whose keys and values are only written. */
export interface EncodeOptions<K, V> extends KeyOptions<K> {
  valueEncoding?: string | Transcoder.PartialEncoder<V> | undefined
}

/** Options of calls whose keys and values are read, or read and written. */
export interface EncodingOptions<K, V> {
  keyEncoding?: string | Transcoder.PartialEncoding<K> | undefined
  valueEncoding?: string | Transcoder.PartialEncoding<V> | undefined
}

/** Options of writes that return a value. */
export interface ReadWriteOptions<K, V> extends EncodingOptions<K, V>, WriteOptions, LifeOptions {}

/** Options of `take()`. */
export interface TakeOptions<K, V> extends EncodingOptions<K, V>, WriteOptions {}

/** Options of `popFirst()`. */
export interface PopFirstOptions<K, V> extends EncodingOptions<K, V>, WriteOptions {}

/** A range of keys, as `clear()` has it. */
export interface TransactionRangeOptions<K> extends KeyOptions<K> {
  gt?: K | undefined
  gte?: K | undefined
  lt?: K | undefined
  lte?: K | undefined
}

/** Options of `count()`. */
export interface CountOptions<K> extends TransactionRangeOptions<K> {
  snapshot?: AbstractSnapshot | undefined
}

/** Options of the `entries()` of a transaction. */
export interface TransactionEntriesOptions<K, V> extends EncodingOptions<K, V> {
  gt?: K | undefined
  gte?: K | undefined
  lt?: K | undefined
  lte?: K | undefined

  /** From the greatest key to the least. Default: false. */
  reverse?: boolean | undefined

  /** The most entries. Default: all. */
  limit?: number | undefined
}

/** Options of `transact()`. */
export interface TransactOptions extends WriteOptions {
  /** How often it is run, at most. Default: 10. */
  attempts?: number | undefined
}

/** Options of `checkpoint()`. */
export interface CheckpointOptions {
  /** Copies every file, where hard links would share them. Default: false. */
  copy?: boolean | undefined
}

/** Options of iterators. */
export interface ReadAheadOptions {
  /** Bytes of entries after which a read ends. Default: 64 KiB. */
  highWaterMarkBytes?: number | undefined
}

export interface GetOptions<K, V> extends AbstractGetOptions<K, V> {}
export interface GetManyOptions<K, V> extends AbstractGetManyOptions<K, V> {}
export interface HasOptions<K> extends AbstractHasOptions<K> {}
export interface HasManyOptions<K> extends AbstractHasManyOptions<K> {}
export interface ClearOptions<K> extends AbstractClearOptions<K> {}
export interface PutOptions<K, V> extends AbstractPutOptions<K, V>, WriteOptions, LifeOptions {}
export interface MergeOptions<K, V> extends AbstractPutOptions<K, V>, WriteOptions, LifeOptions {}
export interface DelOptions<K> extends AbstractDelOptions<K>, WriteOptions {}
export interface BatchOptions<K, V> extends AbstractBatchOptions<K, V>, WriteOptions, LifeOptions {}
export interface ChainedBatchPutOptions<TDatabase, K, V>
  extends AbstractChainedBatchPutOptions<TDatabase, K, V>, LifeOptions {}
export interface ChainedBatchWriteOptions extends AbstractChainedBatchWriteOptions, WriteOptions {}

export type BatchOperation<TDatabase, K, V> =
  | (AbstractBatchPutOperation<TDatabase, K, V> & LifeOptions)
  | AbstractBatchDelOperation<TDatabase, K>

export class ChainedBatch<TDatabase, KDefault, VDefault> extends AbstractChainedBatch<
  TDatabase,
  KDefault,
  VDefault
> {
  put(key: KDefault, value: VDefault): this
  put<K = KDefault, V = VDefault>(
    key: K,
    value: V,
    options: ChainedBatchPutOptions<TDatabase, K, V>
  ): this

  write(): Promise<void>
  write(options: ChainedBatchWriteOptions): Promise<void>
}

export type Iterator<TDatabase, K, V> = AbstractIterator<TDatabase, K, V>
export type KeyIterator<TDatabase, K> = AbstractKeyIterator<TDatabase, K>
export type ValueIterator<TDatabase, K, V> = AbstractValueIterator<TDatabase, K, V>

export type IteratorOptions<K, V> = AbstractIteratorOptions<K, V> & ReadAheadOptions
export type KeyIteratorOptions<K> = AbstractKeyIteratorOptions<K> & ReadAheadOptions
export type ValueIteratorOptions<K, V> = AbstractValueIteratorOptions<K, V> & ReadAheadOptions

/** A database at one moment. */
export interface Snapshot extends AbstractSnapshot {
  /**
   * The number of the last write that it has: `changes()` goes on from the next number. It stays after
   * `close()`.
   */
  readonly sequence: number
}
