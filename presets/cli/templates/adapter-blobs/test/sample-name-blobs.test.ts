import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { blobsConformance } from "@portico/test/conformance/blobs";
import { afterAll } from "vitest";
import { sampleNameBlobs } from "../src/sample-name-blobs.ts";

const folder = mkdtempSync(join(tmpdir(), "sample-name-"));
afterAll(() => rmSync(folder, { recursive: true }));

let count = 0;

// The rules of the port. Each test gets an empty store. `shared`: two adapters of one database see the same blobs.
blobsConformance("sample-name", () => ({ adapter: sampleNameBlobs({ path: join(folder, `${++count}.sqlite`) }) }), {
  shared: true,
});
