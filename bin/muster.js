#!/usr/bin/env node
const [major, minor] = process.versions.node.split('.').map(Number)
if (major < 22 || (major === 22 && minor < 13)) {
  console.error(`muster: needs Node 22.13 or newer, this is ${process.versions.node}`)
  process.exitCode = 2
} else {
  const { keepCompiledCode } = await import('../dist/compile-cache.js')
  keepCompiledCode()
  await import('../dist/main.js')
}
