// Both kinds of modules load the same class.

import { createRequire } from 'node:module'
import test from 'tape'
import { EskerLevel } from 'esker-level'
import * as everything from 'esker-level'

const require = createRequire(import.meta.url)
const { newLocation } = require('./directories.js')

test('import and require', async function (t) {
  t.is(EskerLevel, require('esker-level').EskerLevel)
  t.is(EskerLevel, require('..').EskerLevel)
  t.same(Object.keys(everything), Object.keys(require('esker-level')))
  t.throws(
    () => require('esker-level/lib/binding'),
    { code: 'ERR_PACKAGE_PATH_NOT_EXPORTED' },
    'the native half is not exported'
  )
  t.is(require('esker-level/package.json').name, 'esker-level')
  const db = new EskerLevel(newLocation())
  await db.put('a', '1')
  t.is(await db.get('a'), '1')
  await db.close()
})
