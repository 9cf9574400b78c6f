import { readFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { root } from "../../rooms/repository.ts";

/** Compressed, of everything that is loaded before the overview is seen. */
const FIRST_VIEW_BYTES = 250 * 1024;
/** The part of it that is not the font. */
const FIRST_CODE_BYTES = 100 * 1024;

interface Chunk {
  readonly file: string;
  readonly imports?: readonly string[];
  readonly dynamicImports?: readonly string[];
  readonly css?: readonly string[];
}

const built = (file: string) => readFileSync(join(root, "console/page", file));
const manifest = () => JSON.parse(built("manifest.json").toString()) as Record<string, Chunk>;

/** A chunk's own files, and those of everything that it imports at once. */
function filesOf(chunks: Record<string, Chunk>, key: string, seen = new Set<string>()): Set<string> {
  const { file, css = [], imports = [] } = chunks[key]!;
  if (seen.has(file)) return seen;
  for (const each of [file, ...css]) seen.add(each);
  for (const each of imports) filesOf(chunks, each, seen);
  return seen;
}

describe("what is built of the web console", () => {
  it("is under 250 KB compressed for the first view, and its scripts and styles under 100 KB", () => {
    const chunks = manifest();
    const files = new Set([...filesOf(chunks, "index.html"), ...filesOf(chunks, "src/pages/Overview.svelte")]);
    const font = Object.values(chunks).find(({ file }) => /inter-latin-wght/.test(file))!.file;
    const bytes = [...files].map((file) => gzipSync(built(file)).byteLength);
    expect(files.size).toBeGreaterThan(3);
    const code = bytes.reduce((sum, each) => sum + each, 0);
    expect(code).toBeLessThan(FIRST_CODE_BYTES);
    expect(code + built(font).byteLength).toBeLessThan(FIRST_VIEW_BYTES);
  });

  it("loads every page when it is asked for, and none of them before", () => {
    const chunks = manifest();
    const pages = Object.keys(chunks).filter((key) => /^src\/pages\/\w+\.svelte$/.test(key));
    expect(pages.length).toBeGreaterThanOrEqual(6);
    const entry = filesOf(chunks, "index.html");
    expect(pages.filter((page) => entry.has(chunks[page]!.file))).toEqual([]);
    expect(chunks["index.html"]!.dynamicImports).toEqual(expect.arrayContaining(pages));
  });

  it("loads what draws graphs when there is one to be drawn", () => {
    const chunks = manifest();
    const graph = "src/pages/workflows/graph/WorkflowGraph.svelte";
    expect(filesOf(chunks, "src/pages/Workflows.svelte")).not.toContain(chunks[graph]!.file);
    expect(chunks["src/pages/Workflows.svelte"]!.dynamicImports).toContain(graph);
  });

  it("loads what draws charts when there is one to be drawn", () => {
    const chunks = manifest();
    const drawing = "src/blocks/chart/draw-chart.ts";
    const page = "src/pages/Measurements.svelte";
    expect(filesOf(chunks, page)).not.toContain(chunks[drawing]!.file);
    expect(filesOf(chunks, "src/pages/overview/LastDay.svelte")).not.toContain(chunks[drawing]!.file);
    const loaded = [...filesOf(chunks, page)];
    const loading = Object.values(chunks).filter(({ file, dynamicImports }) => loaded.includes(file) && dynamicImports);
    expect(loading.flatMap(({ dynamicImports }) => dynamicImports)).toContain(drawing);
  });

  it("carries the licenses of what is in it", () => {
    const notices = built("licenses.md").toString();
    for (const name of ["svelte", "bits-ui", "@fontsource-variable/inter", "uplot", "lucide"])
      expect(notices).toContain(`## ${name} - `);
  });
});
