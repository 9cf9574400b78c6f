import { channel } from "node:diagnostics_channel";
import { once } from "node:events";
import { readdirSync } from "node:fs";
import { createServer, type Server } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import { createManualClock, type ManualClock } from "@portico/adapters/clock/manual";
import { toNodeHandler } from "@portico/core/node";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { openListeners } from "../../../presets/cli/src/listeners.ts";
import { TOKENS } from "../../harness/agent-app.ts";
import { type FilesService, startFilesService } from "../../harness/files-app.ts";
import { statusOf } from "../../harness/raw-call.ts";

const MINUTE = 60_000;

let clock: ManualClock;
let service: FilesService;
let ends: (() => unknown)[];
beforeEach(async () => {
  clock = createManualClock();
  service = await startFilesService({ clock });
  ends = [];
});
afterEach(async () => {
  for (const end of ends) await end();
  await service.close();
});

describe("an upload that takes its time", () => {
  it.each([
    ["a preset", listenerOfPreset],
    ["a host without Node's requestTimeout", () => listenerOfHost(0)],
  ])("lives for as long as it moves on a listener of %s, and is taken", async (_what, listen) => {
    const upload = await begin(await listen());
    // Ten minutes, where Node's own time-out is five.
    for (let minute = 0; minute < 10; minute++) {
      await upload.send("x");
      await clock.advance(MINUTE - 1);
    }
    await upload.send("\r\n--b--\r\n");
    expect(statusOf(await upload.answer())).toBe(201);
  });

  it.each([
    ["a preset", listenerOfPreset],
    ["a host without Node's requestTimeout", () => listenerOfHost(0)],
  ])("is 408 on a listener of %s when nothing came for a minute, and nothing is kept", async (_what, listen) => {
    const upload = await begin(await listen());
    await upload.send("x");
    // The first minute may begin before the service waits for more.
    await vi.waitFor(
      async () => {
        await clock.advance(MINUTE);
        expect(statusOf(upload.received())).toBe(408);
      },
      { timeout: 30_000 },
    );
    await expect.poll(kept).toEqual([]);
  });

  it("is cut off by Node itself on a host that leaves its requestTimeout, although it moves, and nothing is kept", async () => {
    const upload = await begin(await listenerOfHost(1000));
    const moving = setInterval(() => void upload.send("x").catch(() => undefined), 50);
    ends.push(() => clearInterval(moving));
    // Whatever the host makes of it, it is no answer of ours.
    expect(statusOf(await upload.answer())).not.toBe(201);
    await expect.poll(kept).toEqual([]);
  });

  it("is limited only by the surface on a listener of a preset: Node's own request timeout is off there", async () => {
    const origin = await listenerOfPreset();
    const seen: Server[] = [];
    const onRequest = (message: unknown) => void seen.push((message as { readonly server: Server }).server);
    channel("http.server.request.start").subscribe(onRequest);
    ends.push(() => channel("http.server.request.start").unsubscribe(onRequest));
    await fetch(origin);
    expect(seen.map(({ requestTimeout, timeout }) => [requestTimeout, timeout])).toEqual([[0, 0]]);
  });
});

async function listenerOfPreset(): Promise<string> {
  const { urls, drain } = await openListeners(service.app, { addresses: { agent: { host: "127.0.0.1", port: 0 } } });
  ends.push(() => drain(0));
  return urls["agent"]!;
}

/** As an application makes it that has the surface in it; its time-out is looked after often. */
async function listenerOfHost(requestTimeout: number): Promise<string> {
  const server = createServer(
    { requestTimeout, headersTimeout: 0, connectionsCheckingInterval: 50 },
    toNodeHandler(service.app.surface("agent")),
  ).listen(0, "127.0.0.1");
  await once(server, "listening");
  ends.push(() => {
    server.close();
    server.closeAllConnections();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

interface SlowUpload {
  /** Resolves when the service has read it. */
  send(bytes: string): Promise<void>;
  /** All that came back by the end of the connection, or of the answer. */
  answer(): Promise<string>;
  received(): string;
}

async function begin(origin: string): Promise<SlowUpload> {
  const arrived = vi.fn<(socket: Socket) => void>();
  const onRequest = (message: unknown) => arrived((message as { readonly socket: Socket }).socket);
  channel("http.server.request.start").subscribe(onRequest);
  const { hostname, port } = new URL(origin);
  const socket = connect(Number(port), hostname);
  ends.push(() => socket.destroy());
  let [received, sent] = ["", 0];
  const over = new Promise<void>((resolve) => {
    socket.on("error", () => {}).on("close", () => resolve());
    socket.on("data", (chunk: Buffer) => {
      received += chunk.toString("latin1");
      if (received.includes("\r\n\r\n")) resolve();
    });
  });
  const send = async (bytes: string) => {
    sent += Buffer.byteLength(bytes);
    socket.write(bytes);
    await vi.waitFor(() => expect(arrived.mock.calls[0]![0].bytesRead).toBe(sent), { timeout: 30_000 });
    // What was read is also taken.
    await new Promise((resolve) => setImmediate(resolve));
  };
  const head = [
    "POST /api/attachments HTTP/1.1",
    "host: 127.0.0.1",
    `x-agent-service-token: ${TOKENS.owner}`,
    "content-type: multipart/form-data; boundary=b",
    "transfer-encoding: chunked",
  ];
  const chunk = (bytes: string) => `${Buffer.byteLength(bytes).toString(16)}\r\n${bytes}\r\n`;
  await send(`${head.join("\r\n")}\r\n\r\n`);
  channel("http.server.request.start").unsubscribe(onRequest);
  await send(chunk('--b\r\ncontent-disposition: form-data; name="file"; filename="a"\r\n\r\n'));
  return {
    send: (bytes) => send(chunk(bytes) + (bytes.endsWith("--b--\r\n") ? "0\r\n\r\n" : "")),
    received: () => received,
    async answer() {
      await over;
      return received;
    },
  };
}

/** Every file below the service's folder. */
function kept(): string[] {
  const all = readdirSync(service.filesDir, { recursive: true, withFileTypes: true });
  return all.filter((entry) => entry.isFile() && !["lock", ".format"].includes(entry.name)).map(({ name }) => name);
}
