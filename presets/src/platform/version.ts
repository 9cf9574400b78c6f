import { readFileSync } from "node:fs";

const manifest = new URL(import.meta.resolve("#package.json"));

/** The version of this package, from its package.json: all packages of a release have the same. */
export const VERSION: string = (JSON.parse(readFileSync(manifest, "utf8")) as { version: string }).version;
