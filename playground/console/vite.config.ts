import { fileURLToPath } from "node:url";
import { svelte } from "@sveltejs/vite-plugin-svelte";
import { defineConfig } from "vite";

export default defineConfig({
  // Relative, so that the page works behind a path of somebody else's server, too.
  base: "./",
  plugins: [svelte({ configFile: false })],
  build: {
    // The package that serves it ships it.
    outDir: fileURLToPath(new URL("../../presets/console", import.meta.url)),
    emptyOutDir: true,
    assetsDir: "console",
    // The policy of the page allows no `data:` addresses.
    assetsInlineLimit: 0,
    // For whoever asks what is loaded when.
    manifest: "manifest.json",
    // Notices of everything that is bundled, for the package that ships it.
    license: { fileName: "licenses.md" },
    target: "baseline-widely-available",
  },
});
