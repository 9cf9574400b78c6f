import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import { svelte } from "@sveltejs/vite-plugin-svelte";
import { defineConfig, type Plugin } from "vite";
import { iconsLicense, lucideIcons } from "./icons.config.ts";

const compress = promisify(gzip);

/** Beside each file of text its compressed form, made once, for whoever serves it. */
function compressed(): Plugin {
  return {
    name: "compressed",
    async writeBundle({ dir = "" }, bundle) {
      const texts = Object.keys(bundle).filter((file) => /\.(?:js|css|svg)$/.test(file));
      await Promise.all(
        texts.map(async (file) =>
          writeFile(join(dir, `${file}.gz`), await compress(await readFile(join(dir, file)), { level: 9 })),
        ),
      );
    },
  };
}

/** Modules of Node.js are absent from browsers: a page that imports one does not load. */
function withoutNode(): Plugin {
  return {
    name: "without-node",
    enforce: "pre",
    resolveId(source, importer) {
      if (source.startsWith("node:")) throw new Error(`${importer} imports ${source}, and is part of the page`);
    },
  };
}

export default defineConfig({
  // Relative, so that the page works behind a path of another server.
  base: "./",
  plugins: [withoutNode(), lucideIcons(), svelte({ configFile: false }), compressed(), iconsLicense()],
  build: {
    // The server part of this package serves it.
    outDir: fileURLToPath(new URL("page", import.meta.url)),
    emptyOutDir: true,
    assetsDir: "console",
    // The policy of the page allows no `data:` addresses.
    assetsInlineLimit: 0,
    // For whoever asks what is loaded when.
    manifest: "manifest.json",
    // Notices of everything that is bundled, for the package that ships it.
    license: { fileName: "licenses.md" },
    target: "baseline-widely-available",
    // Every installation builds the console: only what can be acted on is printed.
    rolldownOptions: {
      checks: { pluginTimings: false },
      // Names after modules such as `chat.svelte.ts`. The service serves names with one dot.
      output: { chunkFileNames: ({ name }) => `console/${name.replaceAll(".", "-")}-[hash].js` },
    },
  },
});
