import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileBlobs } from "@portico/adapters/blobs/files";
import { memoryBlobs } from "@portico/adapters/blobs/memory";
import { systemClock } from "@portico/adapters/clock/system";
import { afterAll } from "vitest";
import { blobsConformance } from "./blobs.ts";

const folder = mkdtempSync(join(tmpdir(), "portico-blobs-"));
afterAll(() => rmSync(folder, { recursive: true }));

let folders = 0;
const newFolder = (): string => join(folder, `${++folders}`);

blobsConformance("memory", () => ({ adapter: memoryBlobs(), others: [systemClock()] }));
blobsConformance("files", () => ({ adapter: fileBlobs({ dir: newFolder() }) }), { shared: true });
