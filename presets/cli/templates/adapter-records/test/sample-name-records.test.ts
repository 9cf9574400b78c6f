import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { recordsConformance } from "@portico/test/conformance/records";
import { afterAll } from "vitest";
import { sampleNameRecords } from "../src/sample-name-records.ts";

const folder = mkdtempSync(join(tmpdir(), "sample-name-"));
afterAll(() => rmSync(folder, { recursive: true }));

let count = 0;

// The rules of the port. Every test gets an empty store. `shared`: two adapters of one database see the same records.
recordsConformance("sample-name", () => sampleNameRecords({ path: join(folder, `${++count}.sqlite`) }), { shared: true });
