import { memoryBlobs } from "@portico/adapters/blobs/memory";
import { systemClock } from "@portico/adapters/clock/system";
import { memoryRecords } from "@portico/adapters/records/memory";
import { createPendingUploads, ports } from "@portico/core";
import { expect, it } from "vitest";
import { openAdapter } from "../../conformance/open-adapter.ts";

it("bytes that cannot be removed hold no others: a sweep removes those, and throws", async () => {
  const { port: records } = await openAdapter(memoryRecords());
  const { port: blobs } = await openAdapter(memoryBlobs(), [systemClock()]);
  let stuck: string | undefined = "media/stuck";
  const faulty: ports.Blobs = {
    ...blobs,
    remove: async (key) => {
      if (key === stuck) throw new ports.BlobsUnavailable("This one is locked");
      return blobs.remove(key);
    },
  };
  let now = Date.UTC(2026, 0, 1);
  const clock = { now: () => now } as ports.Clock;
  const log = { warn: () => {} } as unknown as ports.Log;
  const pending = createPendingUploads({ records, blobs: faulty, clock, log });
  // Uploads that a kill interrupts: their notes stay.
  for (const key of ["media/stuck", "media/other"]) {
    void pending.store(
      key,
      () => blobs.put(key, (async function* () {})(), { maxBytes: 1 }),
      () => new Promise(() => {}),
    );
    now++;
  }
  const keys = () => Array.fromAsync(blobs.keys("media/"));
  await expect.poll(async () => (await keys()).length).toBe(2);
  const { signal } = new AbortController();
  await pending.sweep(signal);
  expect(await keys()).toHaveLength(2);
  now += 25 * 60 * 60_000;
  await expect(pending.sweep(signal)).rejects.toThrow(ports.BlobsUnavailable);
  expect(await keys()).toEqual(["media/stuck"]);
  stuck = undefined;
  await pending.sweep(signal);
  expect(await keys()).toEqual([]);
});
