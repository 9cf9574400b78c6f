import { once } from "node:events";
import { readdirSync, readlinkSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import { createManualClock } from "@portico/adapters/clock/manual";
import { describe, expect, it, vi } from "vitest";
import { TOKENS } from "../../harness/agent-app.ts";
import { type FilesService, png, startFilesService } from "../../harness/files-app.ts";

const MINUTE = 60_000;
const MEBIBYTE = 1024 * 1024;
/** More than what stands between a reader and a file takes, so that the file has to wait. */
const FILE_BYTES = 19 * MEBIBYTE;

const attachment = {
  upload: (service: FilesService) => service.upload("owner", "/api/attachments", { bytes: Buffer.alloc(FILE_BYTES, 7) }),
  path: async (_service: FilesService, { attachmentId }: any) => `/api/attachments/${attachmentId}`,
};
const media = {
  upload: (service: FilesService) =>
    service.upload("owner", "/api/media/upload", { bytes: png(2, 3, FILE_BYTES), name: "a.png", type: "image/png" }),
  path: (service: FilesService, { mediaId }: any) => service.link("owner", mediaId),
};

// What a process has open is told by Linux alone.
describe.runIf(process.platform === "linux").each(Object.entries({ attachment, media }))("a download of %s", (_name, of) => {
  it("whose readers stop reading gives its files back after a minute, and is not held in memory until then", async () => {
    const clock = createManualClock();
    await using service = await startFilesService({ clock });
    const uploaded = await of.upload(service);
    expect(uploaded.status).toBeLessThan(300);
    const path = await of.path(service, uploaded.body);
    const open = () => filesOpenIn(service.filesDir);
    expect(open()).toBe(0);
    const before = process.memoryUsage().arrayBuffers;
    const readers = await Promise.all(Array.from({ length: 20 }, () => beginReading(service.url, path)));
    await vi.waitFor(() => expect(open()).toBe(readers.length), { timeout: 30_000 });
    await stillness(readers);
    // The upload that was before may still wait to be collected, or be so only now; what the readers do not take would be twenty times that.
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan((readers.length * FILE_BYTES) / 4);

    await vi.waitFor(
      async () => {
        await clock.advance(MINUTE);
        expect(open()).toBe(0);
      },
      { timeout: 30_000 },
    );
    // A reader that resumes later finds a download that was cut.
    for (const reader of readers) expect(await restOf(reader)).toBeLessThan(FILE_BYTES);
    expect(service.telemetry.lines.filter(({ level }) => level === "error")).toEqual([]);
  });
});

/** Without what is on its way in, and the lock that stands beside it. */
function filesOpenIn(folder: string): number {
  return readdirSync("/proc/self/fd").filter((descriptor) => {
    try {
      const path = readlinkSync(`/proc/self/fd/${descriptor}`);
      return path.startsWith(folder) && !path.startsWith(join(folder, ".tmp"));
    } catch {
      return false;
    }
  }).length;
}

/** Asks for it, and reads nothing. */
async function beginReading(origin: string, path: string): Promise<Socket> {
  const { hostname, port } = new URL(origin);
  const socket = connect(Number(port), hostname);
  socket.on("error", () => {}).pause();
  await once(socket, "connect");
  socket.write(`GET ${path} HTTP/1.1\r\nhost: ${hostname}\r\nx-agent-service-token: ${TOKENS.owner}\r\n\r\n`);
  return socket;
}

/** Resolves when nothing moves any more. */
async function stillness(readers: readonly Socket[]): Promise<void> {
  const received = () => readers.reduce((sum, { readableLength }) => sum + readableLength, 0);
  for (let before = -1; before !== received();) {
    before = received();
    for (let turn = 0; turn < 200; turn++) await nextTurn();
  }
}

async function restOf(reader: Socket): Promise<number> {
  let length = 0;
  reader.on("data", (chunk: Buffer) => (length += chunk.length)).resume();
  if (!reader.closed) await once(reader, "close");
  return length;
}
