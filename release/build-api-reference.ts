// Makes the pages of the API reference in `dist/api-reference`: `npm run docs:api`.
import { cp, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { runProgram } from "./run-program.ts";

const root = resolve(import.meta.dirname, "..");
const sources = join(import.meta.dirname, "api-reference");
const SURFACES = ["proxy", "workflow", "agent"];

/** One self-contained page per surface, and the documents next to it, as the command line prints them. */
export async function buildApiReference(into: string): Promise<void> {
  await rm(into, { recursive: true, force: true });
  await mkdir(into, { recursive: true });
  const viewer = dirname(fileURLToPath(import.meta.resolve("swagger-ui-dist/package.json")));
  const lines = await Promise.all(SURFACES.map((surface) => writeSurface(surface, into)));
  await writeFile(join(into, "index.html"), (await text("index.html")).replace("%LIST%", lines.join("\n        ")));
  await cp(join(sources, "show.js"), join(into, "show.js"));
  for (const file of ["swagger-ui.css", "swagger-ui-bundle.js", "swagger-ui-bundle.js.LICENSE.txt", "LICENSE", "NOTICE"])
    await cp(join(viewer, file), join(into, file));
}

/** Returns the surface's line of the list. */
async function writeSurface(surface: string, into: string): Promise<string> {
  const describe = (kind: string) =>
    runProgram(process.execPath, [join(root, "presets/cli/portico.mjs"), kind, "local", "--surface", surface], root);
  const [calls, events] = await Promise.all([describe("openapi"), describe("asyncapi")]);
  const { title } = (JSON.parse(calls) as { info: { title: string } }).info;
  await writeFile(join(into, `${surface}.openapi.json`), calls);
  await writeFile(join(into, `${surface}.openapi.js`), `globalThis.openapi = ${calls.trim()};\n`);
  const { channels } = JSON.parse(events) as { channels: object };
  const hasEvents = Object.keys(channels).length > 0;
  if (hasEvents) await writeFile(join(into, `${surface}.asyncapi.json`), events);
  const page = (await text("surface.html")).replaceAll("%TITLE%", title).replaceAll("%SURFACE%", surface);
  await writeFile(join(into, `${surface}.html`), page);
  const kinds = hasEvents ? ["openapi", "asyncapi"] : ["openapi"];
  const files = kinds.map((kind) => `<a href="${surface}.${kind}.json">${surface}.${kind}.json</a>`);
  return `<li><a href="${surface}.html">${title}</a> (${files.join(", ")})</li>`;
}

function text(file: string): Promise<string> {
  return readFile(join(sources, file), "utf8");
}

if (import.meta.main) await buildApiReference(join(root, "dist/api-reference"));
