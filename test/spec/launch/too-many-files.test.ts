import { Agent, request } from "node:http";
import { connect, type Socket } from "node:net";
import { expect, it } from "vitest";
import { type PorticoProcess, startPortico } from "../../harness/portico-process.ts";
import { png } from "../../harness/media-samples.ts";

/** A service that stands has some 60 open. */
const OPEN_FILES = 120;

/** Calls over one connection that stands before all places are taken. */
function caller(service: PorticoProcess) {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const token: string = JSON.parse(service.read("credentials.json")).agentServiceToken;
  const call = (method: string, path: string, type?: string, body?: Buffer): Promise<[number | undefined, string]> =>
    new Promise((resolve, reject) => {
      const headers = { "x-agent-service-token": token, ...(type && { "content-type": type }) };
      const sent = request(service.url("agent") + path, { method, headers, agent }, async (answer) => {
        const chunks: Buffer[] = await answer.toArray();
        resolve([answer.statusCode, Buffer.concat(chunks).toString()]);
      });
      sent.once("error", reject).end(body);
    });
  const upload = (path: string) => {
    const head = '--b\r\nContent-Disposition: form-data; name="file"; filename="a.png"\r\nContent-Type: image/png\r\n\r\n';
    const body = Buffer.concat([Buffer.from(head), png(2, 2), Buffer.from("\r\n--b--\r\n")]);
    return call("POST", path, "multipart/form-data; boundary=b", body);
  };
  return { call, upload, close: () => agent.destroy() };
}

it("a service that has too many files open answers 503, never 500, and goes on when it has room again", async () => {
  await using service = await startPortico({ args: ["agent"], openFiles: OPEN_FILES });
  const { call, upload, close } = caller(service);
  expect((await upload("/api/attachments"))[0]).toBe(201);

  const { hostname, port } = new URL(service.url("agent"));
  const idle: Socket[] = Array.from({ length: OPEN_FILES }, () => connect(Number(port), hostname).on("error", () => {}));
  await expect.poll(async () => (await call("GET", "/api/agents"))[0], { timeout: 30_000 }).toBe(503);

  expect(await call("GET", "/api/agents")).toEqual([503, expect.stringContaining("Too many files are open")]);
  expect(await upload("/api/attachments")).toEqual([503, '{"error":"attachment_storage_unavailable"}']);
  expect(await upload("/api/media/upload")).toEqual([503, '{"error":"media_internal_error"}']);
  expect((await call("GET", "/api/runs"))[0]).toBe(200);

  for (const socket of idle) socket.destroy();
  await expect.poll(async () => (await call("GET", "/api/agents"))[0], { timeout: 30_000 }).toBe(200);
  expect((await upload("/api/attachments"))[0]).toBe(201);
  close();
  expect(await service.stop()).toBe(0);
});
