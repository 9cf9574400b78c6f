import { PassThrough } from "node:stream";
import { roomIn } from "@portico/core";
import { describe, expect, it } from "vitest";

describe("room in a full stream", () => {
  it("is there once its reader took what was written, and not before", async () => {
    const stream = full();
    let hasRoom = false;
    const room = roomIn(stream).then(() => (hasRoom = true));
    await new Promise((resolve) => setImmediate(resolve));
    expect(hasRoom).toBe(false);
    stream.resume();
    await room;
    expect([stream.listenerCount("drain"), stream.writableNeedDrain]).toEqual([0, false]);
  });

  it("is waited for no longer than its reader stays", async () => {
    const stream = full();
    const room = roomIn(stream);
    stream.destroy();
    await room;
  });

  it("is not waited for when the reader left before", async () => {
    const stream = full();
    stream.destroy();
    await new Promise((resolve) => stream.once("close", resolve));
    await roomIn(stream);
  });
});

function full(): PassThrough {
  const stream = new PassThrough({ highWaterMark: 1 });
  while (stream.write("x"));
  return stream;
}
