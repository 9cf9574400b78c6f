import { appendFile, readFile } from "node:fs/promises";
import { join } from "node:path";
import icons from "unplugin-icons/vite";
import type { Plugin } from "vite";

/** Makes `~icons/lucide/NAME` a component: an `<svg>` of 24 pixels that screen readers skip, unless its properties say otherwise. */
export function lucideIcons(): Plugin[] {
  const plugin = icons({
    compiler: "svelte",
    scale: 0,
    iconCustomizer(_collection, _icon, attributes) {
      Object.assign(attributes, { width: "24", height: "24", "aria-hidden": "true" });
    },
  });
  return [plugin].flat();
}

/** Adds the notice of the icons to `licenses.md`: they are data of a package that carries no notice for the bundler to find. */
export function iconsLicense(): Plugin {
  return {
    name: "icons-license",
    enforce: "post",
    async writeBundle({ dir = "" }) {
      const text = await readFile(new URL("lucide-license.txt", import.meta.url), "utf8");
      await appendFile(join(dir, "licenses.md"), `\n## lucide - ISC\n\n${text}`);
    },
  };
}
