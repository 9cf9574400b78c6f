import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileBlobs } from "@portico/adapters/blobs/files";
import { memoryBlobs } from "@portico/adapters/blobs/memory";
import { type S3BlobsOptions, s3Blobs } from "@portico/cluster/blobs/s3";
import { systemClock } from "@portico/adapters/clock/system";
import { afterAll } from "vitest";
import { s3ServerOptions } from "../harness/s3-server.ts";
import { startS3Store } from "../harness/s3-store.ts";
import { blobsConformance } from "./blobs.ts";
import { openAdapter } from "./open-adapter.ts";

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

const places: S3BlobsOptions[] = [];
if (s3ServerOptions() === undefined) {
  console.warn("The law of blobs is not tried on a real S3 store: PORTICO_TEST_S3 names none");
} else {
  afterAll(async () => {
    for (const options of places) {
      const { port, close } = await openAdapter(s3Blobs(options), [systemClock()]);
      for await (const key of port.keys()) await port.remove(key);
      await close();
    }
  }, 600_000);
  blobsConformance(
    "s3, the named store",
    () => {
      const options = { ...s3ServerOptions()!, partBytes: 5 * 1024 * 1024 };
      places.push(options);
      return { adapter: s3Blobs(options), others: [systemClock()] };
    },
    { shared: true },
  );
}
