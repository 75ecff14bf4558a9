'use strict'

// The package: what it says of itself, its documentation, and its types.

const test = require('tape')
const { execFileSync } = require('node:child_process')
const fs = require('node:fs')
const path = require('node:path')
const { EskerLevel } = require('..')
const { newLocation } = require('./directories')

const root = path.join(__dirname, '..')
const read = (file) => fs.readFileSync(path.join(root, file), 'utf8')

test('the lock file names versions, and no place to get them from', function (t) {
  const lock = JSON.parse(read('package-lock.json'))
  const packages = Object.entries(lock.packages).filter(([name]) => name !== '')
  t.ok(packages.length > 10)
  t.same(
    packages.filter(([, entry]) => entry.resolved !== undefined).map(([name]) => name),
    []
  )
  t.same(
    packages.filter(([, entry]) => entry.integrity === undefined).map(([name]) => name),
    []
  )
  t.end()
})

test('the manifest names what is there', async function (t) {
  const db = new EskerLevel(newLocation())
  for (const [name, has] of Object.entries(db.supports.additionalMethods))
    t.is(typeof db[name], has ? 'function' : 'undefined', name)
  t.same(
    Object.keys(db.supports.encodings).filter((name) => ['buffer', 'utf8', 'view'].includes(name)),
    ['buffer', 'utf8', 'view']
  )
  for (const name of [
    'implicitSnapshots',
    'explicitSnapshots',
    'snapshots',
    'seek',
    'has',
    'getSync',
    'createIfMissing',
    'errorIfExists',
    'permanence',
    'deferredOpen'
  ])
    t.is(db.supports[name], true, name)
  t.is(db.supports.signals.iterators, true)
  await db.close()
})

test('the types are those of the code', function (t) {
  const compiler = require.resolve('typescript/bin/tsc')
  const output = execFileSync(process.execPath, [
    compiler,
    '--project',
    path.join(__dirname, 'tsconfig.json')
  ]).toString()
  t.is(output, '')
  const declared = read('index.d.ts').match(/export class EskerLevel[^]*?\n}/)[0]
  const methods = Object.getOwnPropertyNames(EskerLevel.prototype).filter(
    (name) => !name.startsWith('_')
  )
  for (const name of methods.filter((name) => name !== 'constructor'))
    t.ok(new RegExp(`\\b${name}\\b`).test(declared), `${name} is declared`)
  t.end()
})

for (const file of ['README.md', '../doc/node.md', '../doc/book/start-node.md']) {
  test(`the snippets of ${path.basename(file)}`, function (t) {
    const blocks = [...read(file).matchAll(/^```(\w*)\n([^]*?)^```$/gm)]
      .map(([, language, text]) => ({ language, text }))
      .filter(({ language }) => language !== 'sh')
    // What a snippet prints stands in the block `text` behind it, too, where there is one.
    const shown = (index) => (blocks[index + 1]?.language === 'text' ? blocks[index + 1].text : null)
    const snippets = blocks
      .map(({ language, text }, index) => ({ language, text, shown: shown(index) }))
      .filter(({ language }) => language === 'js')
    t.is(snippets.length, read(file).split('```js\n').length - 1)
    t.ok(snippets.length > 0)
    const directory = path.join(root, 'build', 'snippets')
    fs.mkdirSync(directory, { recursive: true })
    snippets.forEach(function ({ text: snippet, shown }, index) {
      // Below the package, which is then found by its name; in a directory of its own, for `data`.
      const program = path.join(directory, `${path.basename(file, '.md')}-${index}.mjs`)
      const location = newLocation()
      fs.mkdirSync(location)
      fs.writeFileSync(program, snippet)
      const printed = execFileSync(process.execPath, [program], { cwd: location })
        .toString()
        .trimEnd()
      const expected = [...snippet.matchAll(/console\.log\(.*\) \/\/ (.*)$/gm)]
        .map((found) => found[1])
        .join('\n')
      t.is(printed, expected, `snippet ${index + 1} prints what it says`)
      if (shown !== null) t.is(printed, shown.trimEnd(), `snippet ${index + 1} prints what is shown`)
    })
    t.end()
  })
}
