import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileBlobs } from "@portico/adapters/blobs/files";
import { memoryBlobs } from "@portico/adapters/blobs/memory";
import { s3Blobs } from "@portico/adapters/blobs/s3";
import { systemClock } from "@portico/adapters/clock/system";
import { afterAll } from "vitest";
import { startS3Store } from "../harness/s3-store.ts";
import { blobsConformance } from "./blobs.ts";

const folder = mkdtempSync(join(tmpdir(), "portico-blobs-"));
afterAll(() => rmSync(folder, { recursive: true }));

let folders = 0;
const newFolder = (): string => join(folder, `${++folders}`);

blobsConformance("memory", () => ({ adapter: memoryBlobs(), others: [systemClock()] }));
blobsConformance("files", () => ({ adapter: fileBlobs({ dir: newFolder() }) }), { shared: true });

const store = await startS3Store({ pageSize: 100 });
afterAll(() => store.close());
blobsConformance("s3", () => ({ adapter: s3Blobs(store.makeBucket().options), others: [systemClock()] }), { shared: true });
blobsConformance(
  "s3, in parts",
  () => ({ adapter: s3Blobs({ ...store.makeBucket().options, partBytes: 5 * 1024 * 1024 }), others: [systemClock()] }),
  { shared: true },
);
