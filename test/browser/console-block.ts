import { resolve } from "node:path";
import { svelte } from "@sveltejs/vite-plugin-svelte";
import type { Page } from "playwright-core";
import { build } from "vite";
import { lucideIcons } from "../../console/icons.config.ts";

const BLOCKS = resolve(import.meta.dirname, "../../console/src/blocks");
const ENTRY = "\0entry";

/**
 * Shows a block of the console on a page with the console's own policy and tokens, instead of the console. `file` is its path below
 * `console/src/blocks`. The page's `globalThis.block` has the component's exports, and its `props`, which can be changed.
 */
export async function showBlock(page: Page, file: string, props: Readonly<Record<string, unknown>>): Promise<void> {
  const files = await buildBlock(file);
  await page.route(/\/console\/block-/, (route) => {
    const name = new URL(route.request().url()).pathname.replace("/console/", "");
    const content = files.get(name);
    if (content === undefined) return route.fulfill({ status: 404 });
    return route.fulfill({ body: content, contentType: name.endsWith(".css") ? "text/css" : "text/javascript" });
  });
  // The page without the console's script, which would create the page's one trusted policy first.
  const address = new URL("/", page.url()).href;
  await page.route(address, async (route) => {
    const answer = await route.fetch();
    const styles = [...files.keys()].filter((name) => name.endsWith(".css"));
    const links = styles.map((name) => `<link rel="stylesheet" href="/console/${name}" />`);
    const html = (await answer.text())
      .replace(/<script type="module".*?<\/script>/s, "")
      .replace("</head>", `${links.join("")}</head>`)
      .replace(/<body>.*<\/body>/s, "<body><main><h1>Block</h1></main></body>");
    await route.fulfill({ response: answer, body: html });
  });
  await page.goto(address);
  // A text, because the test runner rewrites imports.
  const show = `({ show }) => void (globalThis.block = show(document.querySelector("main"), ${JSON.stringify(props)}))`;
  await page.evaluate(`import("/console/block-entry.js").then(${show})`);
}

/** The block's bundle: contents by file name. */
async function buildBlock(file: string): Promise<Map<string, string>> {
  const entry = `
    import { mount } from "svelte";
    import { proxied } from ${JSON.stringify(`${ENTRY}.svelte.js`)};
    import Block from ${JSON.stringify(resolve(BLOCKS, file))};
    export function show(target, given) {
      const props = proxied(given);
      return { props, component: mount(Block, { target, props }) };
    }`;
  const built = await build({
    configFile: false,
    logLevel: "error",
    root: BLOCKS,
    plugins: [
      lucideIcons(),
      svelte({ configFile: false }),
      {
        name: "entry",
        resolveId: (id) => (id.startsWith(ENTRY) ? id : undefined),
        load: (id) => {
          if (id === ENTRY) return entry;
          if (id === `${ENTRY}.svelte.js`) return "export function proxied(given) { const props = $state(given); return props; }";
          return undefined;
        },
      },
    ],
    build: {
      write: false,
      minify: false,
      assetsInlineLimit: 0,
      rolldownOptions: {
        input: { entry: ENTRY },
        preserveEntrySignatures: "strict",
        checks: { pluginTimings: false },
        output: { entryFileNames: "block-[name].js", chunkFileNames: "block-[name].js", assetFileNames: "block-[name][extname]" },
      },
    },
  });
  const { output } = (Array.isArray(built) ? built[0] : built) as {
    output: { fileName: string; code?: string; source?: unknown }[];
  };
  return new Map(output.map(({ fileName, code, source }) => [fileName, code ?? String(source)]));
}
