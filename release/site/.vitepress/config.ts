import { resolve } from "node:path";
import { defineConfig } from "vitepress";
import { pagesOf, sidebarOf, sitePath } from "../contents.ts";
import { forgeSlug } from "../heading-slug.ts";
import { bracesAsText, linksOfSite, mermaidPictures, repositoryUrl } from "../pages-as-site.ts";
import { searchOptions } from "../search.ts";

const root = resolve(import.meta.dirname, "../../..");
const pages = pagesOf();
const repository = repositoryUrl(process.env);

/** The site of the pages: the same files that a forge shows. */
export default defineConfig({
  title: "Portico",
  description: "A TypeScript framework for agent-platform servers",
  lang: "en",
  // Pages of a forge stand below the name of the repository.
  base: process.env["PORTICO_SITE_BASE"] ?? "/",
  srcDir: root,
  // Readmes of templates and of folders of sources are for readers of their files.
  srcExclude: ["console/page/**", "presets/cli/templates/**", "plugins/src/**", "playground/*.md", "test/*/**"],
  outDir: resolve(root, "dist/site"),
  cacheDir: resolve(root, "release/site/node_modules/.cache"),
  rewrites: sitePath,
  // The search index and the script that draws pictures are large, and load when they are needed.
  vite: { build: { chunkSizeWarningLimit: 2_000 } },
  markdown: {
    attrs: { disable: true },
    // Languages without a highlighter.
    languageAlias: { usage: "sh", caddyfile: "nginx", haproxy: "nginx" },
    anchor: { slugify: forgeSlug },
    config: (markdown) => void markdown.use(linksOfSite, { root, pages, repository }).use(mermaidPictures).use(bracesAsText),
  },
  themeConfig: {
    sidebar: await sidebarOf(root),
    outline: { level: [2, 3] },
    search: { provider: "local", options: { miniSearch: { searchOptions } } },
    ...(repository === undefined
      ? {}
      : {
          editLink: { pattern: `${repository}/edit/main/:path`, text: "Edit this page" },
          nav: [{ text: "Source", link: repository }],
        }),
  },
});
