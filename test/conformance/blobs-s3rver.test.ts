import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { Readable } from "node:stream";
import { s3Blobs } from "@portico/cluster/blobs/s3";
import { systemClock } from "@portico/adapters/clock/system";
import { ports, Secret } from "@portico/core";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { hasTools, loadOracle } from "../harness/oracle.ts";
import { type OpenAdapter, openAdapter } from "./open-adapter.ts";

const MIB = 1024 * 1024;
const PLENTY = { maxBytes: 64 * MIB };
const isInstalled = hasTools("test/oracles", "Tests of blobs on s3rver");

/** What we use of `@20minutes/s3rver`. */
type S3rver = new (options: object) => { run(): Promise<{ readonly port: number }>; close(): Promise<void> };

/**
 * A server of others, which checks signatures in its own way. It ignores preconditions and overwrites what is being read, so that the
 * whole law cannot hold on it.
 */
describe.skipIf(!isInstalled)("blobs/s3 on s3rver", () => {
  const directory = mkdtempSync(join(tmpdir(), "portico-s3rver-"));
  let server: InstanceType<S3rver>;
  let port: number;
  beforeAll(async () => {
    const { default: Server } = await loadOracle<{ readonly default: S3rver }>("@20minutes/s3rver");
    server = new Server({ address: "127.0.0.1", port: 0, silent: true, directory, configureBuckets: [{ name: "bucket" }] });
    ({ port } = await server.run());
  });
  afterAll(async () => {
    await server.close();
    rmSync(directory, { recursive: true });
  });

  let prefixes = 0;
  let opened: OpenAdapter<ports.Blobs>;
  let blobs: ports.Blobs;
  const open = (key: string): Promise<OpenAdapter<ports.Blobs>> =>
    openAdapter(
      s3Blobs({
        ...{ endpoint: `http://127.0.0.1:${port}`, bucket: "bucket", prefix: `${prefixes}/`, partBytes: 5 * MIB },
        ...{ accessKeyId: new Secret("S3RVER"), secretAccessKey: new Secret(key) },
      }),
      [systemClock()],
    );
  beforeEach(async () => {
    prefixes++;
    opened = await open("S3RVER");
    blobs = opened.port;
  });
  afterEach(() => opened.close());
  const put = (key: string, bytes: Uint8Array, more: Partial<ports.PutBlobOptions> = {}) =>
    blobs.put(key, Readable.from([bytes]), { ...PLENTY, ...more });

  it.each([0, 1000, 5 * MIB, 11 * MIB])("keeps %d bytes, whole and in ranges", async (size) => {
    const bytes = randomBytes(size);
    expect((await put("folder/a", bytes)).size).toBe(size);
    expect((await blobs.stat("folder/a"))?.size).toBe(size);
    expect((await buffer((await blobs.open("folder/a"))!.stream)).equals(bytes)).toBe(true);
    await expect(blobs.open("folder/a", { start: size })).rejects.toThrow(RangeError);
    if (size === 0) return;
    const { stream } = (await blobs.open("folder/a", { start: 1, end: size - 2 }))!;
    expect((await buffer(stream)).equals(bytes.subarray(1, -1))).toBe(true);
  });

  it("lists and removes", async () => {
    const keys = Array.from({ length: 20 }, (_, at) => `${at % 3}/${at}`).toSorted();
    await Promise.all(keys.map((key) => put(key, Buffer.from(key))));
    expect((await Array.fromAsync(blobs.keys())).toSorted()).toEqual(keys);
    expect((await Array.fromAsync(blobs.keys("1/"))).toSorted()).toEqual(keys.filter((key) => key.startsWith("1/")));
    const ends = await Promise.all(Array.from({ length: 10 }, () => blobs.remove("1/1")));
    expect(ends.filter(Boolean)).toHaveLength(1);
    expect(await blobs.open("1/1")).toBeUndefined();
  });

  it("stores nothing of what breaks", async () => {
    await expect(put("a", Buffer.alloc(6 * MIB), { maxBytes: 6 * MIB - 1 })).rejects.toThrow(ports.BlobTooLarge);
    await put("a", Buffer.from("first"));
    await expect(put("a", Buffer.from("second"), { ifAbsent: true })).rejects.toThrow(ports.BlobExists);
    expect(await Array.fromAsync(blobs.keys())).toEqual(["a"]);
  });

  it("is refused with another key", async () => {
    await expect(open("another")).rejects.toMatchObject({ cause: { code: "SignatureDoesNotMatch" } });
  });
});
