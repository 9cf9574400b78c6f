#!/usr/bin/env node
// Nothing newer than the JavaScript of Node.js 12: it must be read by the very versions that the next line refuses.
import "@portico/core/needed-node";

// What was compiled once is kept beside the package, where that can be written: every later start takes half the time.
Promise.all([import("node:module"), import("node:url")])
  .then(([module, url]) =>
    module.enableCompileCache(url.fileURLToPath(new URL("./node_modules/.cache/portico", import.meta.url))),
  )
  .catch(() => {})
  .then(() => import("#main"))
  .then((cli) => cli.main(process.argv.slice(2)));
