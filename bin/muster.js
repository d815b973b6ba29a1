#!/bin/sh
':' //; { true 3>&1; } 2> /dev/null || { echo 'muster: stdout is closed, nothing was done. To discard the output: > /dev/null' >&2; exit 1; }
':' //; exec node "$0" "$@"
// The lines above are for sh, as Node opens /dev/null where stdout is closed, and nobody could tell any more.
// `engines` in package.json says the same. No `await` here: a Node that knows none at the top would print a syntax error instead.
const [major, minor] = process.versions.node.split('.').map(Number)
if (major < 22 || (major === 22 && minor < 13)) {
  console.error(`muster: needs Node 22.13 or newer, this is ${process.versions.node}`)
  process.exitCode = 2
} else {
  void import('../dist/compile-cache.js').then(({ keepCompiledCode }) => {
    keepCompiledCode()
    // Shared options with a value may come before the verb. A value such as `--hosts run` is not the verb.
    let at = 2
    while (/^--(hosts|exclude|fan-out|connect-timeout|persist|timeout)$/.test(process.argv[at])) at += 2
    return process.argv[at] === 'run' ? import('../dist/run.js') : import('../dist/main.js')
  })
}
