'use strict'

// The suite that the authors of `abstract-level` publish for its implementations, as it is. What it
// tests follows from the manifest of the database alone.

const test = require('tape')
const suite = require('abstract-level/test')
const { EskerLevel } = require('..')
const { newLocation } = require('./directories')

suite({
  test,
  factory: (options) => new EskerLevel(newLocation(), options)
})
